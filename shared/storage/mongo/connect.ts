import {
  MongoAPIError,
  MongoClient,
  MongoServerError,
  type Collection,
  type Db,
  type MongoClientOptions,
  type Document,
  type WriteConcern,
  type WriteConcernSettings,
} from 'mongodb'
import { subscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import { ConfigError } from '#shared/core/config.ts'
import type { MemoryDocument } from '#shared/storage/mongo/documents.ts'
import {
  isSearchMissing,
  isUnreachable,
  refuseWhenUnreachable,
} from '#shared/storage/mongo/server-errors.ts'

export { refuseWhenUnreachable } from '#shared/storage/mongo/server-errors.ts'

export type Mongo = {
  memories: Collection<MemoryDocument>
  /** @throws Refusal `unavailable` when the server does not answer. */
  ping(): Promise<void>
  /** The version of the server, for people; never rejects. */
  version(): Promise<string>
  /** False when the deployment reports that it has no `$vectorSearch` and no search indexes. */
  hasVectorSearch(): Promise<boolean>
  close(): Promise<void>
}

/** The collection of memories alone. */
export type MemoryCollection = Pick<Mongo, 'memories'>

/** Where the URI has no deadline of its own. */
const connectDeadlineMs = 2_000

/**
 * Opens the database named in the URI (default `vault`). Every write waits for the journal, and in a
 * replica set or sharded cluster for a majority: with the driver's default 314 of 16,447 acknowledged
 * writes were lost over six kills of the server, with `{w: 1, j: true}` none. Reads ask the primary, since
 * a secondary lacks what was stored a moment ago. The driver repeats a retryable write or read once.
 *
 * @param uri its `serverSelectionTimeoutMS` and `connectTimeoutMS` bound the wait for a server, two
 *   seconds without them.
 * @throws ConfigError when the URI cannot work; Refusal `unavailable` when the server does not answer
 *   in that time.
 */
export async function openMongo(uri: string): Promise<Mongo> {
  drainClosedSockets()
  const client = createClient(uri)
  for (const listen of commandListeners) client.on('commandStarted', listen)
  await client.connect().catch(rejectUselessUri)
  const database = openDatabase(uri, client)
  const hello = await database.command({ hello: 1 }).catch(rejectUselessUri)
  const writeConcern = effectiveWriteConcern(client.options.writeConcern, hello)
  const memories = database.collection<MemoryDocument>('memories', {
    writeConcern,
    readPreference: 'primary',
  })

  return {
    memories,
    async ping() {
      const signal = AbortSignal.timeout(connectDeadlineMs)
      await database.command({ ping: 1 }, { signal }).catch(refuseWhenUnreachable)
    },
    // A deployment may refuse the command (strict API versions): that stops no release.
    version: () =>
      database.command({ buildInfo: 1 }).then(
        ({ version }) => String(version),
        () => 'of an unknown version',
      ),
    hasVectorSearch: () => answersSearch(memories),
    close: () => client.close(),
  }
}

/** Retryable writes and reads are on by default; the URI of a deployment without them switches them off. */
function createClient(uri: string): MongoClient {
  try {
    const client = new MongoClient(uri, {
      ...connectDeadlines(uri),
      maxPoolSize: 20,
      ignoreUndefined: true,
      monitorCommands: commandListeners.length > 0,
    })
    checkPoolsSeldom(client)
    return client
  } catch (error) {
    throw uselessUri(error)
  }
}

/** As often as the driver asks each server how it is. */
const poolCheckMs = 10_000

/**
 * The driver looks ten times a second for connections to open (`minPoolSize`) or to close (`maxIdleTimeMS`). Without
 * either it only forgets those that a server has closed, which no caller gets anyway: these looks were half of what
 * idle processes cost. The option has no public name; where a driver does not know it the looks are as before.
 */
function checkPoolsSeldom({ options }: MongoClient): void {
  if (options.minPoolSize || options.maxIdleTimeMS) return
  Object.assign(options, { minPoolSizeCheckFrequencyMS: poolCheckMs })
}

/** The driver prefers options over the URI: what the URI has is not set again. */
function connectDeadlines(uri: string): MongoClientOptions {
  const hasOption = (name: string): boolean => new RegExp(`[?&]${name}=`, 'i').test(uri)
  return {
    ...(!hasOption('connectTimeoutMS') && { connectTimeoutMS: connectDeadlineMs }),
    ...(!hasOption('serverSelectionTimeoutMS') && { serverSelectionTimeoutMS: connectDeadlineMs }),
  }
}

function openDatabase(uri: string, client: MongoClient): Db {
  try {
    return client.db(databaseName(uri, client))
  } catch (error) {
    throw uselessUri(error)
  }
}

/** The name in the URI; the driver's own default, `test`, is not used. */
const databaseName = (uri: string, { options }: MongoClient): string =>
  /^[^:]+:\/\/[^/?]+\/[^?]/.test(uri) ? options.dbName : 'vault'

/** Wrong user or password: code of the server, and of Atlas. */
const authenticationCodes = new Set<unknown>([18, 8000])

/** DNS answers to `mongodb+srv` that a later try does not change. */
const missingNameCodes = new Set<unknown>(['ENOTFOUND', 'ENODATA'])

/** Faults that need another connection string name its variable; all others are a store out of reach. */
function rejectUselessUri(error: unknown): never {
  if (!(error instanceof Error)) throw error
  const { code, syscall } = error as { code?: unknown; syscall?: unknown }
  const isMissingName = missingNameCodes.has(code) && syscall === 'querySrv'
  const isRefusedLogin = error instanceof MongoServerError && authenticationCodes.has(code)
  const isMalformed = error instanceof MongoAPIError && !isUnreachable(error)
  if (isMalformed || isMissingName || isRefusedLogin) throw uselessUri(error)
  return refuseWhenUnreachable(error)
}

/** The message of the driver, unless it quotes what may be a part of the password. */
function uselessUri(error: unknown): ConfigError {
  const { message } = error as Error
  const reason = message.includes('@') ? 'it is no connection string of MongoDB' : message
  return new ConfigError([`MONGODB_URI cannot be used: ${reason}`])
}

/** Listeners of every client opened later: tests check each command's scope with them. */
export const commandListeners: (Parameters<MongoClient['on']> extends [infer _, infer Listener]
  ? Listener
  : never)[] = []

/** A server without search answers with a code of its own; after any other refusal search may be there. */
async function answersSearch(memories: Collection<MemoryDocument>): Promise<boolean> {
  try {
    await memories.aggregate([{ $listSearchIndexes: {} }]).toArray()
    return true
  } catch (error) {
    if (isSearchMissing(error)) return false
    if (error instanceof MongoServerError && !isUnreachable(error)) return true
    return refuseWhenUnreachable(error)
  }
}

/**
 * Ends a wait of the driver that has no end. Driver 7.8 (`Connection.writeCommand`) waits for 'drain' alone when a
 * socket takes no more; a socket whose server has just closed it takes nothing and never drains. When this happens
 * to a monitor its server counts as unknown until the process ends: seen once in some 60 kills of a server under
 * load. After 'drain' the driver finds the error of the closed connection and goes on.
 *
 * For the sockets of all clients of this process, since the driver does not give its own: others have removed their
 * listeners by then.
 */
function drainClosedSockets(): void {
  if (isSubscribed) return
  isSubscribed = true
  // https://nodejs.org/api/diagnostics_channel.html: TCP, pipes and TLS
  subscribe('net.client.socket', message => {
    const { socket } = message as { socket: Socket }
    socket.once('close', () => process.nextTick(() => socket.emit('drain')))
  })
}

let isSubscribed = false

/** A replica set has at most seven members that vote. */
const votersMax = 7

/**
 * The write concern of every write: journaled, and in a replica set or sharded cluster acknowledged by a
 * majority, so that an election takes nothing back. The URI may ask for more (a tag set, more members than
 * a majority, a time-out), not for less.
 *
 * @param asked the write concern of the connection string
 * @param hello the server's answer to `hello`
 */
function effectiveWriteConcern(
  asked: WriteConcern | undefined,
  { setName, msg, hosts, passives }: Document,
): WriteConcernSettings {
  if (!setName && msg !== 'isdbgrid') return { w: 1, j: true }
  const members = setName ? [hosts, passives].flat().filter(Boolean).length : votersMax
  const majority = Math.floor(Math.min(members, votersMax) / 2) + 1
  const { w, wtimeoutMS } = asked ?? {}
  const isStronger = typeof w === 'number' ? w >= majority && w > 1 : w !== undefined
  return {
    w: isStronger ? w : 'majority',
    j: true,
    ...(wtimeoutMS !== undefined && { wtimeoutMS }),
  } as WriteConcernSettings
}
