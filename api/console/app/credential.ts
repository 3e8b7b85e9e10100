/** The credential of this tab: stored until the tab is closed, and sent to the service in a header alone. */
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
  /** Whether it stays in this tab: a link has opened it in a browser that was signed in with another. */
  alone?: boolean
}

type Stored = { round?: string; credential?: Credential }

const storageKey = 'memory-vault.credential'
/** Where the playground keeps its conversation: no longer than the credential. */
export const conversationKey = 'memory-vault.conversation'
/** Its value changes when a tab signs out: what a tab has stored before that is void, also in a tab that missed it. */
const roundKey = 'memory-vault.round'

/** The id of the signed-in tab that was in use last; tabs of one browser may have different credentials. */
export const lastTabKey = 'memory-vault.last-tab'

const currentRound = (): string => localStorage.getItem(roundKey) ?? ''

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
  sessionStorage.removeItem(conversationKey)
  const stored = JSON.stringify({ round: currentRound(), credential })
  if (credential) sessionStorage.setItem(storageKey, stored)
  else sessionStorage.removeItem(storageKey)
  for (const listener of listeners) listener()
}

/** Signs out this tab and all others of the browser. */
export function signOutAllTabs(): void {
  localStorage.setItem(roundKey, `${Date.now()} ${Math.random()}`)
  localStorage.removeItem(lastTabKey)
  setCredential(null)
}

const leaveOldRound = (): void => {
  if (current && !readStored()) setCredential(null, 'You have signed out in another tab.')
}
addEventListener('storage', leaveOldRound)
// A page that comes back by Back has missed the event.
addEventListener('pageshow', leaveOldRound)

/** Its first and last characters, as the service masks keys. */
export const maskKey = ({ key }: Pick<Credential, 'key'>): string =>
  `${key.slice(0, 6)}…${key.replace(/:\w+$/, '').slice(-4)}${/:\w+$/.exec(key)?.[0] ?? ''}`

/** Whether the key's suffix lets it store, edit and delete. */
export const canWrite = (): boolean => current !== null && !/:(?:read|off)$/.test(current.key)

function readStored(): Credential | null {
  try {
    const stored = JSON.parse(sessionStorage.getItem(storageKey) ?? '{}') as Stored
    return stored.round === currentRound() ? (stored.credential ?? null) : null
  } catch {
    return null
  }
}
