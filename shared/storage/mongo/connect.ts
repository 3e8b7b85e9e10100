import { MongoClient, MongoError, type Collection, type WriteConcernSettings } from 'mongodb'
import { Refusal } from '#shared/core/errors.ts'
import type { MemoryDocument } from '#shared/storage/mongo/documents.ts'

export type Mongo = {
  memories: Collection<MemoryDocument>
  /** @throws Refusal `unavailable` when the server does not answer. */
  ping(): Promise<void>
  /** Whether the deployment supports `$vectorSearch` and search index commands. */
  hasVectorSearch(): Promise<boolean>
  close(): Promise<void>
}

/** No request waits longer; `timeoutMS` has no effect in driver 7.8, an abort signal has. */
export const deadlineMs = 5_000

const connectDeadlineMs = 2_000

/**
 * Opens the database named in the URI (default `vault`). Every write waits for the journal: with the
 * driver's default 314 of 16,447 acknowledged writes were lost over six kills of the server, with
 * `{w: 1, j: true}` none; a replica set waits for its majority too.
 *
 * @throws Refusal `unavailable` when the server does not answer within two seconds.
 */
export async function openMongo(uri: string): Promise<Mongo> {
  const client = new MongoClient(uri, {
    connectTimeoutMS: connectDeadlineMs,
    serverSelectionTimeoutMS: connectDeadlineMs,
    maxPoolSize: 20,
    retryWrites: false,
    ignoreUndefined: true,
    monitorCommands: commandListeners.length > 0,
  })
  for (const listen of commandListeners) client.on('commandStarted', listen)
  await client.connect().catch(refuseWhenUnreachable)
  const database = client.db(new URL(uri).pathname.slice(1) || 'vault')
  const { setName } = await database.command({ hello: 1 }).catch(refuseWhenUnreachable)
  const writeConcern: WriteConcernSettings = { w: setName ? 'majority' : 1, j: true }
  const memories = database.collection<MemoryDocument>('memories', { writeConcern })

  return {
    memories,
    async ping() {
      const signal = AbortSignal.timeout(connectDeadlineMs)
      await database.command({ ping: 1 }, { signal }).catch(refuseWhenUnreachable)
    },
    hasVectorSearch: () => answersSearch(memories),
    close: () => client.close(),
  }
}

type CommandListener =
  Parameters<MongoClient['on']> extends [infer _, infer Listener] ? Listener : never

/** Listeners of every client opened later: tests check each command's scope with them. */
export const commandListeners: CommandListener[] = []

/** A server without search says so by name; any other answer means that search is enabled. */
async function answersSearch(memories: Collection<MemoryDocument>): Promise<boolean> {
  try {
    await memories.aggregate([{ $listSearchIndexes: {} }]).toArray()
    return true
  } catch (error) {
    if (error instanceof MongoError && !isUnreachable(error)) return false
    return refuseWhenUnreachable(error)
  }
}

/** Rethrows an error of a server that is out of reach or did not answer in time, as a Refusal. */
export function refuseWhenUnreachable(error: unknown): never {
  if (isUnreachable(error)) {
    throw new Refusal(
      'unavailable',
      'The memory store is out of reach',
      'Try again in a few seconds',
    )
  }
  throw error
}

const unreachableNames =
  /^(Mongo(Network|ServerSelection|TopologyClosed|PoolCleared|NotConnected|OperationTimeout|WaitQueueTimeout).*Error|TimeoutError|AbortError)$/

/** Socket errors that the driver passes on unchanged. */
const socketCodes = /^(ECONN|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENOTFOUND|EAI_AGAIN)/

function isUnreachable(error: unknown): boolean {
  const { name = '', code, cause } = error as { name?: string; code?: unknown; cause?: unknown }
  if (unreachableNames.test(name) || (typeof code === 'string' && socketCodes.test(code))) {
    return true
  }
  // A bulk write that no server answered: errors of a server have codes.
  if (name === 'MongoBulkWriteError' && code === undefined) return true
  return cause instanceof Error && unreachableNames.test(cause.name)
}
