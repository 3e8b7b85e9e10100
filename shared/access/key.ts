import { createHmac } from 'node:crypto'
import { randomBase62 } from '#shared/core/ids.ts'

export type KeyKind = 'vault' | 'member' | 'admin'

/** What a key's suffix lets it do. */
export type KeyMode = 'on' | 'read' | 'write' | 'off'

/** What a request may do with memory; switches can only take away from it. */
export type Permissions = { retrieve: boolean; store: boolean }

export const permissionsByMode: Record<KeyMode, Permissions> = {
  on: { retrieve: true, store: true },
  read: { retrieve: true, store: false },
  write: { retrieve: false, store: true },
  off: { retrieve: false, store: false },
}

const prefixes: Record<KeyKind, string> = { vault: 'mk_', member: 'mk_org_', admin: 'mk_admin_' }

/** A new raw key: its prefix and 32 random base62 characters (190 bits). It is shown once. */
export const mintKey = (kind: KeyKind): string => prefixes[kind] + randomBase62(32)

const keyPattern = /^(mk_[A-Za-z0-9_-]{16,64})(?::(read|write|off))?$/

/**
 * Splits a presented credential into the key and its mode.
 *
 * @returns undefined when it is no Memory Key, an unknown suffix included.
 */
export function parseKey(presented: string): { key: string; mode: KeyMode } | undefined {
  const match = keyPattern.exec(presented)
  return match ? { key: match[1]!, mode: (match[2] as KeyMode | undefined) ?? 'on' } : undefined
}

/** Whether a credential means to be one of ours: such a value never leaves this service. */
export const looksLikeKey = (presented: string): boolean => presented.startsWith('mk_')

/** Whether one of ours may be in a text, alone or inside it: that never leaves this service either. */
export const containsKey = (text: string): boolean =>
  looksLikeKey(text) || /mk_[A-Za-z0-9_-]{16}/.test(text)

/** What a key is looked up by: keyed, so a stolen table cannot be searched for guessed keys. */
export function hashKey(pepper: string, key: string): Buffer {
  return createHmac('sha256', pepper).update(key).digest()
}

/** The form a key takes in answers and listings: its first 6 characters and its last 4. */
export const maskKey = (key: string): string => `${key.slice(0, 6)}…${key.slice(-4)}`

/** A member key as listings show it; given whole or masked. */
export const maskMemberKey = (key: string): string => `mk_org_…${key.slice(-4)}`

/**
 * A text with every Memory Key in it masked, the reader's own too: what a client is told of its
 * mistakes ends up in logs, tickets and chats.
 */
export const maskKeys = (text: string): string =>
  text.replaceAll(/mk_[A-Za-z0-9_-]{16,}/g, key => maskKey(key))

/** The mode that permits what both permit: of two suffixes the narrower counts. */
export function intersectModes(one: KeyMode, other: KeyMode): KeyMode {
  const retrieve = permissionsByMode[one].retrieve && permissionsByMode[other].retrieve
  const store = permissionsByMode[one].store && permissionsByMode[other].store
  if (retrieve) return store ? 'on' : 'read'
  return store ? 'write' : 'off'
}
