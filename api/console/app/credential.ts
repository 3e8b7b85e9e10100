/** The credential of this tab: stored until the tab is closed, and sent only in a header. */
export type Credential = {
  key: string
  kind: 'vault' | 'admin'
  /** Whether the Memory Key acts for its account, not for one user. */
  owner: boolean
  /** Whether the Memory Key is of a member of an organization. */
  member: boolean
  /** Whether the admin also operates the service. */
  operator: boolean
  /** Whether the credential opens nothing but a review queue. */
  reviewer: boolean
  /** Whether it was made by a login and ends with it. */
  login?: boolean
}

const storageKey = 'memory-vault.credential'

let current: Credential | null = readStored()
/** Why the last credential was removed. */
let lastSignOutReason: string | null = null
const listeners = new Set<() => void>()

export const currentCredential = (): Credential | null => current
export const signOutReason = (): string | null => lastSignOutReason

/** @returns a function that unsubscribes */
export function onCredential(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Replaces the credential; null signs out and displays `reason`. */
export function setCredential(credential: Credential | null, reason: string | null = null): void {
  current = credential
  lastSignOutReason = reason
  if (credential) sessionStorage.setItem(storageKey, JSON.stringify(credential))
  else sessionStorage.removeItem(storageKey)
  for (const listener of listeners) listener()
}

/** Its first and last characters, as the service masks keys. */
export const maskKey = ({ key }: Pick<Credential, 'key'>): string =>
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
