import type { EarlierTurn, UserTurn } from '#api/proxy/dialects/dialect.ts'
import { inPlace, type EarlierBlock, type EarlierBlocks } from '#api/proxy/recall-earlier-turns.ts'
import type { AbstentionReason, PreparedContext } from '#shared/vault/read/prepare/prepare.ts'

/** The result of a recall for a call. */
export type RecallResult = {
  /**
   * `ok`: there is a context block; `none`: nothing relevant was found; `off`: not requested;
   * `degraded`: the recall failed or took too long, and the call continues without a block; `aside`: the call
   * is a program's own, and has no memory.
   */
  status: 'ok' | 'none' | 'off' | 'degraded' | 'aside'
  context: string | null
  /** What the block was made from. */
  prepared: PreparedContext | undefined
  /** How many parts of the user's turn precede the block. */
  blockIndex: number
  /** Tokens of the memories found, and of the context block. */
  recalledTokens: number
  contextTokens: number
  /** Tags of the shared memories in all blocks of the prompt. */
  tags: readonly string[]
  /** How likely the answer is in the block, and why there is none; where it was recalled for this call. */
  confidence?: number
  abstained?: AbstentionReason | null
  /** The blocks of earlier turns, which stay where they were. */
  earlier: readonly EarlierBlock[]
  /**
   * The first turn whose block is not what the request before this one had; undefined when all are, and a
   * provider's cache is as good as without memory.
   */
  lost: EarlierTurn | UserTurn | undefined
  /** Resolves when the result is stored for the next call of the same turn; never rejects. */
  persisted: Promise<void>
}

export const emptyRecall = {
  context: null,
  prepared: undefined,
  blockIndex: 0,
  recalledTokens: 0,
  contextTokens: 0,
  tags: [],
  earlier: [],
  lost: undefined,
  persisted: Promise.resolve(),
}

export const disabledRecall: RecallResult = { status: 'off', ...emptyRecall }

export const degradedRecall: RecallResult = { status: 'degraded', ...emptyRecall }

export function toRecallResult(prepared: PreparedContext | void, blockIndex: number): RecallResult {
  if (!prepared) return { ...degradedRecall, blockIndex }
  const { recalledTokens, contextTokens, tags } = prepared
  const status = prepared.context === null ? 'none' : 'ok'
  const context = prepared.context && inPlace(prepared.context, blockIndex)
  const tokens = { recalledTokens, contextTokens }
  return { ...emptyRecall, status, context, prepared, blockIndex, ...tokens, tags }
}

/** @param lost the last turn, when its block may be another than before */
export function withEarlier(
  result: RecallResult,
  earlier: Omit<EarlierBlocks, 'lost'> & Pick<RecallResult, 'lost'>,
  lost: UserTurn | undefined,
): RecallResult {
  const { blocks, tokens, tags, lost: lostBefore, persisted } = earlier
  return {
    ...result,
    contextTokens: result.contextTokens + tokens,
    tags: [...new Set([...result.tags, ...tags])],
    earlier: blocks,
    lost: lostBefore ?? lost,
    persisted: Promise.all([result.persisted, persisted]).then(() => {}),
  }
}
