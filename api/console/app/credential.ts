/** What opens the console in this tab: kept until the tab is closed, and sent in a header alone. */
export type Credential = {
  key: string
  kind: 'vault' | 'admin'
  /** A Memory Key that acts for its account, and not for one user. */
  owner: boolean
  /** An admin who also runs the service. */
  operator: boolean
}

const place = 'memory-vault.credential'

let held: Credential | null = read()
/** Why the last one was put away. */
let reason: string | null = null
const listeners = new Set<() => void>()

export const credential = (): Credential | null => held
export const reasonForLeaving = (): string | null => reason

/** @returns a function that ends it */
export function onCredential(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Puts a credential in place of the one held; null signs out, and `why` is shown then. */
export function hold(credential: Credential | null, why: string | null = null): void {
  held = credential
  reason = why
  if (credential) sessionStorage.setItem(place, JSON.stringify(credential))
  else sessionStorage.removeItem(place)
  for (const listener of listeners) listener()
}

/** Its beginning and end, as the service shows keys. */
export const masked = ({ key }: Credential): string =>
  `${key.slice(0, 6)}…${key.replace(/:\w+$/, '').slice(-4)}${/:\w+$/.exec(key)?.[0] ?? ''}`

/** Whether the key's suffix lets it store, edit and delete. */
export const mayWrite = (): boolean => held !== null && !/:(?:read|off)$/.test(held.key)

function read(): Credential | null {
  try {
    return JSON.parse(sessionStorage.getItem(place) ?? 'null') as Credential | null
  } catch {
    return null
  }
}
