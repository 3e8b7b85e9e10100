import { Refusal } from '#shared/core/errors.ts'
import { copyIdOf, mintId } from '#shared/core/ids.ts'
import { recordBill } from '#shared/billing/bill.postgres.ts'
import type { TagRunJob } from '#shared/domain/job-payloads.ts'
import { toSnapshot } from '#shared/org/finalize-shared-writes.ts'
import { findOrgPolicy, type OrgPolicy } from '#shared/org/org-policy.postgres.ts'
import { orgBillingHash, recordOrgUsage } from '#shared/org/org-usage.postgres.ts'
import {
  extractJson,
  unusableAnswer,
  type CompletionBackend,
} from '#shared/org/pipeline/cached-completion.ts'
import { openProcessor } from '#shared/org/pipeline/processor.ts'
import { classifyInstructions } from '#shared/org/pipeline/prompts.ts'
import { readTagAnswer, tagAnswerSchema } from '#shared/org/pipeline/tag-prompt.ts'
import { factsPerCall, pagePrompt } from '#shared/org/pipeline/tag-run.ts'
import { findPipelineGate } from '#shared/org/pipeline-state.postgres.ts'
import { reviewThreshold } from '#shared/org/review-threshold.ts'
import { mutateSharedMemory, type SharedMemoryBackend } from '#shared/org/shared-change.ts'
import { untaggedPage } from '#shared/org/shared-lists.mongo.ts'
import type { SharedMemory } from '#shared/org/shared-memories.mongo.ts'
import {
  advanceTagRun,
  findTagRun,
  settleTagRun,
  type TagRun,
} from '#shared/org/tag-runs.postgres.ts'
import { findTag, type TagRow } from '#shared/org/tags.postgres.ts'
import type { Snooze } from '#shared/storage/queue/job-outcome.ts'

type ApplyBackend = CompletionBackend & SharedMemoryBackend

/** How long a run waits for its admin, and for a provider that does not answer. */
const pausedSeconds = 300
const faultSeconds = 60

/**
 * Asks a tag of every memory that has not got it, page by page, newest first. A memory gets the tag where
 * it may well apply, so it is seen by fewer and never by more; where that is doubtful a person looks at it.
 * Waits while the pipeline is paused, has spent its tokens of the day, or its provider does not answer.
 * Safe to run any number of times: a page is asked about again only when its worker died.
 *
 * @returns after how many seconds it is to go on; undefined when it is done, or its tag is gone.
 * @throws Refusal `upstream` for an answer of no use; `conflict`, `unavailable` as `mutateSharedMemory`.
 */
export async function applyTag(
  backend: ApplyBackend,
  job: TagRunJob,
  signal: AbortSignal,
): Promise<Snooze | undefined> {
  const { query } = backend.postgres
  for (;;) {
    signal.throwIfAborted()
    const run = await findTagRun(query, job.run)
    const policy = await findOrgPolicy(query, job.org)
    const tag = run && (await findTag(query, job.org, run.tag))
    if (!run || run.finishedAt || !policy || !tag) return undefined
    const gate = await findPipelineGate(query, job.org)
    if (gate?.paused) return { snoozeSeconds: pausedSeconds }
    if (gate?.overBudget) return { snoozeSeconds: gate.dayLeft + 60 }
    const page = await untaggedPage(backend.mongo, policy, {
      label: tag.label,
      after: run.after ?? undefined,
      count: factsPerCall,
    })
    const last = page.at(-1)
    if (!last) {
      await settleTagRun(query, run.id, null)
      return undefined
    }
    try {
      const counts = await applyToPage(backend, { run, policy, tag, page }, signal)
      const next: [number, string] = [last.acquiredAt, last.id]
      await advanceTagRun(query, run, { next, examined: page.length, ...counts })
    } catch (error) {
      if (!isProviderFault(error)) throw error
      await settleTagRun(query, run.id, error.message)
      return { snoozeSeconds: faultSeconds }
    }
  }
}

/** An answer of no use is one too: it is asked for again a minute later. */
const isProviderFault = (error: unknown): error is Refusal =>
  error instanceof Refusal && ['upstream', 'invalid', 'limited'].includes(error.reason)

type TagPage = { run: TagRun; policy: OrgPolicy; tag: TagRow; page: readonly SharedMemory[] }

async function applyToPage(
  backend: ApplyBackend,
  input: TagPage,
  signal: AbortSignal,
): Promise<{ tagged: number; doubtful: number }> {
  const likelihoods = await askAboutPage(backend, input, signal)
  let tagged = 0
  let doubtful = 0
  for (const [index, memory] of input.page.entries()) {
    const likelihood = likelihoods[index]!
    if (likelihood <= 1 - reviewThreshold) continue
    const isDoubtful = likelihood < reviewThreshold
    await addTag(backend, input, memory.id, isDoubtful ? likelihood : null)
    tagged++
    if (isDoubtful) doubtful++
  }
  return { tagged, doubtful }
}

/** @param doubt how likely the tag applies, where a person has to look; null where it is sure */
async function addTag(
  backend: ApplyBackend,
  { run, policy, tag }: TagPage,
  id: string,
  doubt: number | null,
): Promise<void> {
  const { org, vault, epoch } = policy
  const change = {
    operation: copyIdOf(run.id, 0, id),
    actor: run.createdBy,
    id,
    kind: 'edit',
  } as const
  await mutateSharedMemory(backend, { org, vault, epoch }, change, ({ memory }) => {
    if (!memory) return null
    const { pending, ...now } = toSnapshot(memory)
    const opinion = doubt === null ? {} : { reviewed: false, confidence: doubt }
    return { ...now, ...(pending && { pending }), ...opinion, tags: [...now.tags, tag.label] }
  })
}

/** Each call is billed and counted as it was answered, of use or not. */
async function askAboutPage(
  backend: CompletionBackend,
  { run, policy, tag, page }: TagPage,
  signal: AbortSignal,
): Promise<number[]> {
  const { model, answeringModel } = await openProcessor(backend, policy, policy.classifyModel)
  const { text, isComplete, ...tokens } = await answeringModel.complete(
    {
      instructions: classifyInstructions,
      ...pagePrompt(
        tag,
        page.map(memory => memory.text),
      ),
      schema: tagAnswerSchema(1),
    },
    signal,
  )
  const { org, account, vault } = policy
  const call = { kind: 'org-tag', model, keyHash: orgBillingHash(org), ...tokens } as const
  await backend.postgres.transaction(async tx => {
    await recordBill(tx, { ...call, id: mintId(), account, vault, memoryTokens: 0 })
    await recordOrgUsage(tx, { org, pass: 'tag', member: run.createdBy, model, ...tokens })
  })
  if (!isComplete) throw unusableAnswer('it was cut off')
  return readTagAnswer(extractJson(text), page.length)
}
