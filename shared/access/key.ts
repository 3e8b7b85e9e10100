import { hash } from 'node:crypto'
import { randomBase62 } from '#shared/core/ids.ts'

export type KeyKind = 'vault' | 'member' | 'admin' | 'scim'

/** The rights that a key's suffix leaves it. */
export type KeyMode = 'on' | 'read' | 'write' | 'off'

/** The rights of a request to memory; switches can only remove rights. */
export type Permissions = { retrieve: boolean; store: boolean }

export const permissionsByMode: Record<KeyMode, Permissions> = {
  on: { retrieve: true, store: true },
  read: { retrieve: true, store: false },
  write: { retrieve: false, store: true },
  off: { retrieve: false, store: false },
}

const prefixes: Record<KeyKind, string> = {
  vault: 'mk_',
  member: 'mk_org_',
  admin: 'mk_admin_',
  scim: 'mk_scim_',
}

/** A new raw key: its prefix and 32 random base62 characters (190 bits). It is shown once. */
export const mintKey = (kind: KeyKind): string => prefixes[kind] + randomBase62(32)

const keyPattern = /^(mk_[A-Za-z0-9_-]{16,64})(?::(read|write|off))?$/

/**
 * Splits a credential into the key and its mode.
 *
 * @returns undefined when it is not a Memory Key, or its suffix is unknown.
 */
export function parseKey(presented: string): { key: string; mode: KeyMode } | undefined {
  const match = keyPattern.exec(presented)
  return match ? { key: match[1]!, mode: (match[2] as KeyMode | undefined) ?? 'on' } : undefined
}

/** Whether a credential has the form of a Memory Key: such a value is never sent to a provider. */
export const looksLikeKey = (presented: string): boolean => presented.startsWith('mk_')

/** Whether a text contains what has the form of a Memory Key: it is never sent to a provider. */
export const containsKey = (text: string): boolean =>
  looksLikeKey(text) || /mk_[A-Za-z0-9_-]{16}/.test(text)

/** Keys are looked up by this HMAC, so that a stolen table cannot be searched for guessed keys. */
export function hashKey(pepper: string, key: string): Buffer {
  const { inner, outer } = hmacPads(pepper)
  return sha256(outer, sha256(inner, Buffer.from(key)))
}

/** HMAC of RFC 2104 from two one-shot hashes: an `Hmac` object costs a call without memory 3 % of its CPU. */
const sha256 = (pad: Buffer, message: Buffer): Buffer =>
  hash('sha256', Buffer.concat([pad, message]), 'buffer')

let lastPads: { pepper: string; inner: Buffer; outer: Buffer } | undefined

/** The key of an HMAC with SHA-256 in its two padded forms; a process has one pepper. */
function hmacPads(pepper: string): { pepper: string; inner: Buffer; outer: Buffer } {
  if (lastPads?.pepper === pepper) return lastPads
  const key = Buffer.alloc(64)
  const bytes = Buffer.from(pepper)
  ;(bytes.length > 64 ? hash('sha256', bytes, 'buffer') : bytes).copy(key)
  const padded = (pad: number): Buffer => Buffer.from(key.map(byte => byte ^ pad))
  lastPads = { pepper, inner: padded(0x36), outer: padded(0x5c) }
  return lastPads
}

/** The masked form of a key: its first 6 characters and its last 4. */
export const maskKey = (key: string): string => `${key.slice(0, 6)}…${key.slice(-4)}`

/** A member key as listings show it, from the raw or the masked key. */
export const maskMemberKey = (key: string): string => `mk_org_…${key.slice(-4)}`

/**
 * Masks every Memory Key in a text, the client's own included: error messages end up in logs,
 * tickets and chats.
 */
export const maskKeys = (text: string): string =>
  text.replaceAll(/mk_[A-Za-z0-9_-]{16,}/g, key => maskKey(key))

/** The mode that permits what both permit. */
export function intersectModes(one: KeyMode, other: KeyMode): KeyMode {
  const retrieve = permissionsByMode[one].retrieve && permissionsByMode[other].retrieve
  const store = permissionsByMode[one].store && permissionsByMode[other].store
  if (retrieve) return store ? 'on' : 'read'
  return store ? 'write' : 'off'
}
