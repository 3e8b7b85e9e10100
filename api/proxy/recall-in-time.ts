import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/errors.ts'
import type { Caller } from '#shared/key/caller.ts'
import type { Message } from '#shared/memory/content.ts'
import { prepareContext } from '#shared/memory/prepare.ts'

/** What a call gets from memory. */
export type Recalled = {
  /**
   * `ok`, the model is told something; `none`, nothing relevant is known; `off`, it was not asked for;
   * `degraded`, recalling failed or took too long, and the call goes on without.
   */
  status: 'ok' | 'none' | 'off' | 'degraded'
  context: string | null
  /** Tokens of the memories found, and of the block the model is given. */
  recalledTokens: number
  contextTokens: number
}

/** Nobody waits longer for memory than this. */
const withinMs = 1_500

const nothing = { context: null, recalledTokens: 0, contextTokens: 0 }

export const notAsked: Recalled = { status: 'off', ...nothing }

type Asked = { turns: readonly Message[]; session: string | null; space: Space }

/** What core and session remember about a conversation. Never fails, and never takes long. */
export async function recallInTime(
  backend: Backend,
  caller: Caller,
  { turns, session, space }: Asked,
): Promise<Recalled> {
  if (!space.ready) return { status: 'degraded', ...nothing }
  const preparing = prepareContext(backend, caller, {
    messages: turns,
    session,
    embeddings: space.model,
    density: undefined,
    limit: undefined,
    tiers: undefined,
    importance: undefined,
  })
  try {
    const prepared = await inTime(preparing)
    return { status: prepared.context === null ? 'none' : 'ok', ...prepared }
  } catch (error) {
    backend.log.warn({ err: error, account: caller.account }, 'proxy.recall-failed')
    return { status: 'degraded', ...nothing }
  }
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
