import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { ClientRights } from '#api/client/programs/programs.ts'
import {
  backupFolder,
  closeBackupFolder,
  openBackupFolder,
} from '#scripts/clients/connect/change.ts'
import { explain } from '#scripts/clients/connect/prove.ts'
import { writePrivateFile } from '#scripts/private-file.ts'
import { networkFault } from '#scripts/service-connection.ts'

/** A key that was made for a client, as it is kept beside the client's files until the connection is undone. */
export type ClientKey = {
  baseUrl: string
  /** Undefined for a key that makes no keys, such as that of a member: it is used itself. */
  id: string | undefined
  key: string
  rights: ClientRights
  /** The end of the key that made it. */
  madeWith: string
}

type Service = { baseUrl: string; key: string }

/** What the service answers to a key: `forbidden` stands for a right that the key has not. */
type Answer = { status: number; text: string }

/**
 * Finds what the key of a client with this many users may be: a key for users is made by an owner key alone.
 *
 * @throws Error with a sentence on what is wrong with the address or the key
 */
export async function findRights(service: Service, wanted: ClientRights): Promise<ClientRights> {
  if (wanted === 'memory') return wanted
  const { status } = await call(service, 'GET', '/v1/keys?limit=1', [200, 403])
  if (status === 200) return 'users'
  // A key for users that was made before answers so where no user is named.
  const own = await call(service, 'GET', '/v1/memory/stats', [200, 400, 403])
  return own.status === 400 ? 'users' : 'memory'
}

/**
 * Makes a key for a client, in the name of the client. A key that makes no keys is used itself.
 *
 * @throws Error with a sentence on what is wrong
 */
export async function mintClientKey(
  service: Service,
  { name, rights }: { name: string; rights: ClientRights },
): Promise<ClientKey> {
  const { baseUrl, key } = service
  const madeWith = endOf(key)
  const { status, text } = await call(service, 'POST', '/v1/keys', [201, 403], { name, rights })
  if (status === 403) return { baseUrl, id: undefined, key, rights, madeWith }
  const made = JSON.parse(text) as { id: string; key: string; rights?: string }
  if (made.rights !== rights)
    throw new Error(`${baseUrl} is older than this command: it makes no keys for clients`)
  return { baseUrl, id: made.id, key: made.key, rights, madeWith }
}

/** Ends a key that was made for a client. @returns why it could not be ended; undefined once it has ended. */
export async function revokeClientKey({
  baseUrl,
  id,
  key,
}: ClientKey): Promise<string | undefined> {
  if (id === undefined) return undefined
  try {
    // A key that is unknown by now has ended.
    await call({ baseUrl, key }, 'DELETE', `/v1/keys/${id}`, [200, 401])
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

async function call(
  { baseUrl, key }: Service,
  method: string,
  path: string,
  statuses: readonly number[],
  body?: object,
): Promise<Answer> {
  const url = baseUrl + path
  const response = await fetch(url, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(15_000),
  }).catch((error: unknown) => {
    throw new Error(`${url} cannot be reached: ${networkFault(error)}`, { cause: error })
  })
  const text = await response.text()
  if (statuses.includes(response.status)) return { status: response.status, text }
  throw new Error(`${url} answered ${response.status}: ${explain(text)}`)
}

const endOf = (key: string): string => key.slice(-4)

/** Whether a kept key is the one that this connection would make. */
export const isKeyFor = (
  kept: ClientKey,
  { baseUrl, key }: Service,
  rights: ClientRights,
): boolean => kept.baseUrl === baseUrl && kept.madeWith === endOf(key) && kept.rights === rights

const pathOf = (file: string, client: string): string =>
  join(backupFolder(file), `${client}.key.json`)

/** The key that was made for a client; undefined where there is none. */
export function readClientKey(file: string, client: string): ClientKey | undefined {
  const path = pathOf(file, client)
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as ClientKey) : undefined
}

/** Keeps the key of a client beside its first file, for its owner alone. */
export function keepClientKey(file: string, client: string, key: ClientKey): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  openBackupFolder(file)
  writePrivateFile(pathOf(file, client), `${JSON.stringify(key, null, 2)}\n`)
}

export function forgetClientKey(file: string, client: string): void {
  rmSync(pathOf(file, client), { force: true })
  closeBackupFolder(file)
}
