import { Refusal } from '#shared/core/errors.ts'
import { memoryIdOf } from '#shared/core/ids.ts'
import type { Caller } from '#shared/access/caller.ts'
import { parseTurns, type Message } from '#shared/domain/message-content.ts'
import { expiryFor } from '#shared/domain/expiry.ts'
import type { Memory } from '#shared/domain/memory.ts'
import { splitIntoChunks } from '#shared/vault/base/text-chunks.ts'
import { toExtractionInput } from '#shared/vault/ingest/turn-extraction.ts'
import type { CloseOutcome } from '#shared/vault/ingest/open-exchanges.postgres.ts'
import { applyRedactionToMessages } from '#shared/privacy/apply-redaction.ts'
import type { AcceptWork } from '#shared/vault/ingest/accept.ts'
import type { Embedders } from '#shared/models/embedders.ts'

export type Exchange = {
  /** The UUIDv7 this exchange is accepted under. */
  operation: string
  session: string | null
  messages: readonly Message[]
  /** Provider-prefixed model of the exchange; usage metadata only. */
  model: string | null
  /** Embedding model that names the vault space. */
  embeddings: string | undefined
  /** The request will wait until the exchange can be searched. */
  awaited: boolean
  /** When all of it is to be over, in epoch milliseconds. */
  expiresAt?: number | undefined
  /** Of an exchange that was passed on to its model: see `shared/vault/ingest/open-exchange.ts`. */
  proxied?: {
    /** It fulfils the open exchange of its operation. */
    closes: boolean
    /** The embedding model it is stored with. */
    space: string
    /** As the provider counts them; 0 where it does not say. */
    inputTokens: number
    outputTokens: number
    /** Tokens of the memories recalled for it: billed with it, since both are one request. */
    recalledTokens: number
  }
}

/** Whose exchange it is; a caller is one. */
export type ExchangeOwner = Pick<Caller, 'account' | 'keyHash'> & {
  scope: Pick<Caller['scope'], 'vault'>
  /** Left out where it is not known whether the key is a member's. */
  member?: Caller['memberScope']
  /** What becomes of private data, and how long it is kept; left out where that is not known. */
  row?: Pick<Caller['keyRow'], 'redaction' | 'retentionDays'>
}

export type AcceptedExchange = {
  /** Tokens of the user's turns. */
  userTokens: number
  /** Tokens of the assistant's turns. */
  assistantTokens: number
  memories: number
  /** Of one that closes an exchange which was no longer open: how it stood. Nothing was accepted then. */
  closing?: CloseOutcome
}

/**
 * Accepts a finished exchange for storage. Operation, bill and job are written in one transaction:
 * an accepted exchange is always stored, a refused one never billed. Storing happens later, in
 * `storePromised`, and at most once per operation.
 *
 * @throws Refusal `invalid` when no user or assistant turn is left to store, when the policy of the key
 *   blocks one, or `embeddings` names no known model; `upstream` when that model's provider does not answer.
 */
export async function acceptExchange(
  { accept, embedders, now }: { accept: AcceptWork; embedders: Embedders; now: () => number },
  caller: ExchangeOwner,
  exchange: Exchange,
): Promise<AcceptedExchange> {
  const { operation, proxied } = exchange
  // What a model was asked is looked through when its call is opened: nobody could be refused by now.
  const redaction = proxied ? null : (caller.row?.redaction ?? null)
  const messages = applyRedactionToMessages(redaction, exchange.messages)
  const days = caller.row?.retentionDays ?? null
  const expiry = expiryFor({ asked: exchange.expiresAt, days, storedAt: now() })
  const memories = (await splitIntoMemories(operation, messages, now())).map(memory => ({
    ...memory,
    ...expiry,
  }))
  if (memories.length === 0) {
    throw new Refusal(
      'invalid',
      'messages holds no user or assistant turn to store',
      'System turns, turns marked "memory": false and echoes of the memory block are not stored',
    )
  }
  // Whoever opened the exchange has looked; by now its provider may be away, which is the job's affair.
  const model = proxied?.space ?? (await requireKnownModel(embedders, exchange.embeddings))
  const tokensOfRole = (role: Memory['role']): number =>
    memories.reduce((sum, memory) => sum + (memory.role === role ? memory.tokens : 0), 0)
  const userTokens = tokensOfRole('user')
  const assistantTokens = tokensOfRole('assistant')

  // What is to be forgotten is not told to a team, which would keep it.
  const extractionInput =
    exchange.expiresAt === undefined
      ? toExtractionInput(caller, { ...exchange, messages, saidAt: now() })
      : undefined
  const { closeOutcome } = await accept({
    operation: {
      id: operation,
      account: caller.account,
      vault: caller.scope.vault,
      keyHash: caller.keyHash,
      kind: proxied ? 'proxy' : 'ingest',
      awaited: exchange.awaited,
      session: exchange.session,
      model: exchange.model,
      inputTokens: proxied?.inputTokens || userTokens,
      outputTokens: proxied?.outputTokens || assistantTokens,
      memoryTokens: userTokens + assistantTokens + (proxied?.recalledTokens ?? 0),
    },
    name: 'ingest',
    ...(extractionInput && { extractionInput }),
    closesExchange: proxied?.closes ?? false,
    jobs: ({ epoch, sessionEpoch }) => [
      {
        id: operation,
        data: {
          operation,
          vault: caller.scope.vault,
          epoch,
          session: exchange.session,
          sessionEpoch,
          model,
          ...(days !== null && { retentionDays: days }),
          memories,
        },
      },
    ],
  })
  return {
    userTokens,
    assistantTokens,
    memories: memories.length,
    ...(closeOutcome && closeOutcome !== 'open' && { closing: closeOutcome }),
  }
}

/** The memories an exchange becomes: one per turn, several where a turn is long. */
async function splitIntoMemories(
  operation: string,
  messages: readonly Message[],
  now: number,
): Promise<Memory[]> {
  const memories: Memory[] = []
  for (const { role, text, at = now, speaker, interrupted } of parseTurns(messages)) {
    for (const chunk of await splitIntoChunks(text)) {
      if (chunk.text.trim() === '') continue
      memories.push({
        id: memoryIdOf(operation, memories.length),
        tier: 1,
        role,
        text: chunk.text,
        at,
        tokens: chunk.tokens,
        ...(speaker !== undefined && { speaker }),
        ...(interrupted && { interrupted }),
      })
    }
  }
  return memories
}

/** A model that does not exist is refused now, not in a job hours later. */
async function requireKnownModel(
  embedders: Embedders,
  requestedModel: string | undefined,
): Promise<string> {
  if (requestedModel === undefined || requestedModel === embedders.defaultModel)
    return embedders.defaultModel
  return (await embedders.get(requestedModel)).model
}
