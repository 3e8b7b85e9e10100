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
import type { AcceptIngest } from '#shared/vault/ingest/accept.ts'
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
  /** When its memories expire, in epoch milliseconds. */
  expiresAt?: number | undefined
  /** Of a proxied model call: see `open-exchange.ts`. */
  proxied?: {
    /** It closes the open exchange of its operation. */
    closes: boolean
    /** The embedding model of its vectors. */
    space: string
    /** As counted by the provider; 0 where it reports none. */
    inputTokens: number
    outputTokens: number
    /** Tokens of the memories recalled for the call, billed with it as one request. */
    recalledTokens: number
  }
}

/** Owner of an exchange; a `Caller` is one. */
export type ExchangeOwner = Pick<Caller, 'account' | 'keyHash'> & {
  scope: Pick<Caller['scope'], 'vault'>
  /** Left out where it is unknown whether the key is a member's. */
  memberScope?: Caller['memberScope']
  /** Redaction and retention; left out where they are unknown. */
  keyRow?: Pick<Caller['keyRow'], 'redaction' | 'retentionDays'>
}

export type AcceptedExchange = {
  /** Tokens of the user's turns. */
  userTokens: number
  /** Tokens of the assistant's turns. */
  assistantTokens: number
  memories: number
  /** Of one that closes an exchange which was no longer open: its state. Nothing was accepted then. */
  closing?: CloseOutcome
}

/**
 * The first half of ingest, in the request: turns a finished exchange into memories, and writes operation,
 * bill and job (`IngestJob`) in one transaction. An accepted exchange is always stored, a refused one never
 * billed. The second half is `storeAccepted`, in the job: it embeds and stores the memories, once per
 * operation.
 *
 * @throws Refusal `invalid` when no user or assistant turn is left to store, when the policy of the key
 *   blocks one, or `embeddings` names no known model; `upstream` when that model's provider does not answer.
 */
export async function acceptExchange(
  { accept, embedders, now }: { accept: AcceptIngest; embedders: Embedders; now: () => number },
  caller: ExchangeOwner,
  exchange: Exchange,
): Promise<AcceptedExchange> {
  const { operation, proxied } = exchange
  // Of a proxied call the user's turns were redacted when it was opened; it is too late to refuse it.
  const redaction = proxied ? null : (caller.keyRow?.redaction ?? null)
  const messages = applyRedactionToMessages(redaction, exchange.messages)
  const days = caller.keyRow?.retentionDays ?? null
  const expiry = expiryFor({ requested: exchange.expiresAt, days, storedAt: now() })
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
  // Of a proxied call the model was resolved at the start; its provider may be unreachable by now.
  const model = proxied?.space ?? (await requireKnownModel(embedders, exchange.embeddings))
  const tokensOfRole = (role: Memory['role']): number =>
    memories.reduce((sum, memory) => sum + (memory.role === role ? memory.tokens : 0), 0)
  const userTokens = tokensOfRole('user')
  const assistantTokens = tokensOfRole('assistant')

  // Text that expires is not sent to extraction, since shared memories do not expire with it.
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
      billing: {
        model: exchange.model,
        inputTokens: proxied?.inputTokens || userTokens,
        outputTokens: proxied?.outputTokens || assistantTokens,
        memoryTokens: userTokens + assistantTokens + (proxied?.recalledTokens ?? 0),
      },
    },
    payload: { model, ...(days !== null && { retentionDays: days }), memories },
    closesExchange: proxied?.closes ?? false,
    extractionInput,
  })
  return {
    userTokens,
    assistantTokens,
    memories: memories.length,
    ...(closeOutcome && closeOutcome !== 'open' && { closing: closeOutcome }),
  }
}

/** One memory per turn, several for a long turn. */
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

/** Refuses an unknown model in the request, since the job runs later. */
async function requireKnownModel(
  embedders: Embedders,
  requestedModel: string | undefined,
): Promise<string> {
  if (requestedModel === undefined || requestedModel === embedders.defaultModel)
    return embedders.defaultModel
  return (await embedders.get(requestedModel)).model
}
