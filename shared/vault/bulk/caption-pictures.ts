import question from '#shared/vault/bulk/caption-question.json' with { type: 'json' }
import { recordBill } from '#shared/billing/bill.postgres.ts'
import type { Config } from '#shared/core/config.ts'
import { idForPurpose } from '#shared/core/ids.ts'
import type { Log } from '#shared/core/log.ts'
import { splitModelName } from '#shared/core/provider-registry.ts'
import { sanitizeText } from '#shared/core/sanitize-text.ts'
import { openCompletionModel } from '#shared/models/completion.ts'
import { extractJson } from '#shared/models/completion-model.ts'
import { applyRedaction } from '#shared/privacy/apply-redaction.ts'
import type { Stores } from '#shared/storage/stores.ts'
import { splitIntoChunks } from '#shared/vault/base/text-chunks.ts'
import type { BulkChunk } from '#shared/vault/bulk/files.postgres.ts'
import { readKeptBytes } from '#shared/vault/bulk/kept-files.postgres.ts'
import { idsOf, readStoredStates, type PlannedItem } from '#shared/vault/bulk/plan-items.ts'

export type CaptionBackend = Stores & { config: Config; log: Log }

/** Calls at once, the longest of one, and of all of a step: other uploads wait for it. */
const [callsMax, callMs, stepMs] = [4, 30_000, 60_000]

/** Characters; of a longer caption the beginning. */
const captionLength = 1_000

/**
 * Has the operator's model say what the new pictures of a step show, and sets the texts of their memories. It is asked here,
 * not before the upload is accepted: what is accepted are the pictures, so that a file that is sent again is the same whatever
 * a model says then, and it is asked about none that is stored already.
 *
 * @returns those without a text, which are skipped: the model refuses, is late or says nothing, or a policy keeps it out
 * @throws the reason of `signal`; Refusal `unavailable` when a store is out of reach
 */
export async function captionPictures(
  backend: CaptionBackend,
  chunk: BulkChunk,
  items: readonly PlannedItem[],
  signal: AbortSignal = new AbortController().signal,
): Promise<Set<PlannedItem>> {
  const pictures = items.filter(({ picture, planned }) => picture && planned.as === 'new')
  if (pictures.length === 0) return new Set()
  // An earlier run may have stored some.
  const plans = pictures.map(({ planned }) => planned)
  const states = await readStoredStates(backend, chunk, idsOf(plans))
  for (const { planned, memory } of pictures)
    memory.tokens = states.get(planned.id)?.tokens ?? memory.tokens
  const waiting = pictures.filter(({ planned }) => !states.has(planned.id))
  const uncaptioned = new Set(waiting)
  const end = AbortSignal.any([signal, AbortSignal.timeout(stepMs)])
  const describe = async (item: PlannedItem): Promise<void> => {
    const callEnd = AbortSignal.any([end, AbortSignal.timeout(callMs)])
    try {
      const words = await captionOf(backend, chunk, item.picture!, callEnd)
      const [text] = words ? await splitIntoChunks(`Picture: ${words}`) : []
      if (text && uncaptioned.delete(item)) Object.assign(item.memory, text)
    } catch (error) {
      signal.throwIfAborted()
      backend.log.warn({ err: error, operation: chunk.operation }, 'captions.failed')
    }
  }
  while (waiting.length > 0) await Promise.all(waiting.splice(0, callsMax).map(describe))
  for (const { planned } of uncaptioned) planned.as = 'skip'
  return uncaptioned
}

/** Books the call as it was answered, of use or not, by the key of the upload; of a step that runs twice once. */
async function captionOf(
  { postgres, config: { captionModel, providers } }: CaptionBackend,
  { id, operation, account, vault, keyHash, session, redaction = null }: BulkChunk,
  { digest, mediaType }: NonNullable<PlannedItem['picture']>,
  signal: AbortSignal,
): Promise<string | undefined> {
  const named = splitModelName(providers, captionModel ?? '')
  if (!named) return undefined
  // All providers take pictures in OpenAI's form.
  const { native: _, ...provider } = named.provider
  const model = openCompletionModel({ ...named, provider, apiKey: provider.apiKey ?? '' })
  const file = { vault, id: idForPurpose(id, digest) }
  const bytes = Buffer.concat(await Array.fromAsync(readKeptBytes(postgres.query, file)))
  const picture = { mediaType, base64: bytes.toString('base64') }
  const { text, isComplete: __, ...tokens } = await model.complete({ ...question, picture }, signal)
  const billed = { id: idForPurpose(operation, `caption ${digest}`), account, vault, keyHash }
  const call = { kind: 'caption', model: captionModel, session, memoryTokens: 0, ...tokens }
  await postgres.transaction(tx => recordBill(tx, { ...billed, ...call }))
  const { caption } = (extractJson(text) ?? {}) as { caption?: unknown }
  if (typeof caption !== 'string') return undefined
  const line = caption.slice(0, captionLength).replaceAll(/\s+/g, ' ').trim()
  return applyRedaction(redaction, sanitizeText(line), 'caption')
}
