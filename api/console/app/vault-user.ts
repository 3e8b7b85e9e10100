import { createContext } from 'preact'
import { useContext } from 'preact/hooks'

/** The user of the account whose vault a page is about; undefined: the vault of the key. */
export const UserContext = createContext<string | undefined>(undefined)

export const useVaultUser = (): string | undefined => useContext(UserContext)
