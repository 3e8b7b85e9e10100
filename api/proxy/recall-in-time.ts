import type { UserTurn } from '#api/proxy/dialects/dialect.ts'
import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/core/errors.ts'
import type { Caller } from '#shared/access/caller.ts'
import type { Message } from '#shared/domain/turn-content.ts'
import { prepareAgain, prepareContext, type Prepared } from '#shared/vault/read/prepare.ts'

/** What a call gets from memory. */
export type Recalled = {
  /**
   * `ok`, the model is told something; `none`, nothing relevant is known; `off`, it was not asked for;
   * `degraded`, recalling failed or took too long, and the call goes on without.
   */
  status: 'ok' | 'none' | 'off' | 'degraded'
  context: string | null
  /** How many parts of the user's turn stand before the block. */
  place: number
  /** Tokens of the memories found, and of the block the model is given. */
  recalledTokens: number
  contextTokens: number
  /** Resolves when the next call for the same turn will be told the same; never rejects. */
  kept: Promise<void>
}

/** Nobody waits longer for memory than this. */
const withinMs = 1_500

const nothing = {
  context: null,
  place: 0,
  recalledTokens: 0,
  contextTokens: 0,
  kept: Promise.resolve(),
}

export const notAsked: Recalled = { status: 'off', ...nothing }

const degraded: Recalled = { status: 'degraded', ...nothing }

type Asked = {
  turns: readonly Message[]
  turn: Pick<UserTurn, 'goesOn' | 'place'>
  /** What stands for the turn in the vault of the caller. */
  turnId: Buffer
  session: string | null
  space: Space
}

type Recalling = Pick<Backend, 'recalledTurns' | 'log'> &
  Parameters<typeof prepareContext>[0] &
  Parameters<typeof prepareAgain>[0]

/**
 * What core and session remember about a conversation. Never fails, and never takes long.
 *
 * A turn is told one thing: the calls that bring results of tools get the block that its first call got,
 * byte for byte and in the same place, or none if that got none. So what the provider has cached of the
 * turn stays good; what is new in memory meanwhile, the next turn is told. What is deleted meanwhile
 * leaves the block at once.
 */
export async function recallInTime(
  backend: Recalling,
  caller: Caller,
  asked: Asked,
): Promise<Recalled> {
  // What is over could not be removed in time.
  if (caller.row.hasOver) return degraded
  const { turn, turnId, session, space } = asked
  const key = { vault: caller.scope.vault, turn: turnId }
  const failed = (error: unknown): void =>
    backend.log.warn({ err: error, account: caller.account }, 'proxy.recall-failed')
  const orNothing = <Result>(work: Promise<Result>): Promise<Result | void> =>
    inTime(work).catch(failed)

  const told = turn.goesOn ? await orNothing(backend.recalledTurns.of(key)) : undefined
  if (told) {
    const { memories, at, place } = told
    if (memories === null) return { ...degraded, place }
    const where = { session, embeddings: space.model }
    const again = prepareAgain(backend, caller, { ids: memories, at }, where)
    return { ...recalledOf(await orNothing(again)), place }
  }

  const anew = space.ready ? await orNothing(preparedAnew(backend, caller, asked)) : undefined
  const { ids, at } = anew ?? { ids: null, at: backend.now() }
  const { place } = turn
  const kept = backend.recalledTurns.keep(key, { memories: ids, at, place }).catch(failed)
  return { ...recalledOf(anew), place, kept }
}

const preparedAnew = (
  backend: Recalling,
  caller: Caller,
  { turns, session, space }: Asked,
): Promise<Prepared> =>
  prepareContext(backend, caller, {
    messages: turns,
    session,
    embeddings: space.model,
    density: undefined,
    limit: undefined,
    tiers: undefined,
    importance: undefined,
  })

function recalledOf(prepared: Prepared | void): Recalled {
  if (!prepared) return degraded
  const { context, recalledTokens, contextTokens } = prepared
  const status = context === null ? 'none' : 'ok'
  return { ...nothing, status, context, recalledTokens, contextTokens }
}

/** The vector space of a call; not `ready` when its model does not answer. */
export type Space = { model: string; ready: boolean }

/**
 * The embedding model of a call. One whose provider is away is no reason to fail: nothing is recalled,
 * and the exchange is stored later.
 *
 * @throws Refusal `invalid` when there is no such model here.
 */
export async function spaceFor(
  { embedders }: Pick<Backend, 'embedders'>,
  asked: string | undefined,
): Promise<Space> {
  if (asked === undefined || asked === embedders.defaultModel) {
    return { model: embedders.defaultModel, ready: true }
  }
  try {
    return { model: (await inTime(embedders.get(asked))).model, ready: true }
  } catch (error) {
    if (error instanceof Refusal && error.reason === 'invalid') throw error
    return { model: asked, ready: false }
  }
}

/** The outcome of work, or an error when it takes too long; what comes later is nobody's. */
function inTime<Result>(work: Promise<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`not within ${withinMs} ms`)), withinMs)
    work.then(resolve, reject).finally(() => clearTimeout(late))
  })
}
