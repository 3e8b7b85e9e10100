/** What opens the console in this tab: kept until the tab is closed, and sent in a header alone. */
export type Credential = {
  key: string
  kind: 'vault' | 'admin'
  /** A Memory Key that acts for its account, and not for one user. */
  owner: boolean
  /** An admin who also runs the service. */
  operator: boolean
}

const storageKey = 'memory-vault.credential'

let current: Credential | null = readStored()
/** Why the last one was put away. */
let lastSignOutReason: string | null = null
const listeners = new Set<() => void>()

export const currentCredential = (): Credential | null => current
export const signOutReason = (): string | null => lastSignOutReason

/** @returns a function that ends it */
export function onCredential(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Puts a credential in place of the one held; null signs out, and `why` is shown then. */
export function setCredential(credential: Credential | null, why: string | null = null): void {
  current = credential
  lastSignOutReason = why
  if (credential) sessionStorage.setItem(storageKey, JSON.stringify(credential))
  else sessionStorage.removeItem(storageKey)
  for (const listener of listeners) listener()
}

/** Its beginning and end, as the service shows keys. */
export const maskKey = ({ key }: Credential): string =>
  `${key.slice(0, 6)}…${key.replace(/:\w+$/, '').slice(-4)}${/:\w+$/.exec(key)?.[0] ?? ''}`

/** Whether the key's suffix lets it store, edit and delete. */
export const canWrite = (): boolean => current !== null && !/:(?:read|off)$/.test(current.key)

function readStored(): Credential | null {
  try {
    return JSON.parse(sessionStorage.getItem(storageKey) ?? 'null') as Credential | null
  } catch {
    return null
  }
}
