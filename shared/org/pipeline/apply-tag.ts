import { Refusal } from '#shared/core/errors.ts'
import { copyIdOf } from '#shared/core/ids.ts'
import type { TagRunJob } from '#shared/domain/job-payloads.ts'
import { toSnapshot } from '#shared/org/memories/finalize-shared-writes.ts'
import { extractJson, isAboutPrompt } from '#shared/models/completion-model.ts'
import { findOrgPolicy, type OrgPolicy } from '#shared/org/base/org-policy.postgres.ts'
import {
  meteredCompletion,
  UnusableAnswer,
  type CompletionBackend,
} from '#shared/org/pipeline/cached-completion.ts'
import { classifyInstructions } from '#shared/org/pipeline/prompts.ts'
import { readTagAnswer, tagAnswerSchema } from '#shared/org/pipeline/tag-prompt.ts'
import { callOf, factsPerCall, pagePrompt } from '#shared/org/pipeline/tag-run.ts'
import { findPipelineGate } from '#shared/org/base/pipeline-state.postgres.ts'
import { reviewThreshold, type SharedMemory } from '#shared/org/memories/shared-memories.mongo.ts'
import { mutateSharedMemory, type SharedMemoryBackend } from '#shared/org/memories/shared-change.ts'
import { untaggedPage } from '#shared/org/memories/shared-lists.mongo.ts'
import {
  advanceTagRun,
  findTagRun,
  settleTagRun,
  type TagRun,
} from '#shared/org/pipeline/tag-runs.postgres.ts'
import { findTag, type TagRow } from '#shared/org/base/tags.postgres.ts'
import type { Snooze } from '#shared/storage/queue/job-outcome.ts'

/** How long a run waits for its admin, and for a provider that does not answer. */
const pausedSeconds = 300
const faultSeconds = 60
/** How long a job asks before it goes on as another one: with its last calls less than it may take. */
const shiftMs = 240_000
/** How likely a tag applies to a memory that no model reads. */
const unknownLikelihood = 0.5

/**
 * Asks a tag of every memory that has not got it, page by page, newest first. A memory gets the tag where
 * it may well apply, so it is seen by fewer and never by more; where that is doubtful a person looks at it.
 * Waits while the pipeline is paused, has spent its tokens of the day, or its provider does not answer. What
 * is refused for its words, or answered unusably, is asked about in ever smaller pages; a memory for which
 * that happens by itself is doubtful. Safe to run any number of times: a page is asked about again only when
 * its worker died.
 *
 * @returns after how many seconds it is to go on, be it after some minutes of pages; undefined when it is
 *   done, or its tag is gone.
 * @throws Refusal `conflict`, `unavailable` as `mutateSharedMemory`.
 */
export async function applyTag(
  backend: CompletionBackend & SharedMemoryBackend,
  job: TagRunJob,
  signal: AbortSignal,
): Promise<Snooze | undefined> {
  const { query } = backend.postgres
  const end = backend.now() + shiftMs
  let pageMax = factsPerCall
  for (;;) {
    signal.throwIfAborted()
    const run = await findTagRun(query, job.run)
    const policy = await findOrgPolicy(query, job.org)
    const tag = run && (await findTag(query, job.org, run.tag))
    if (!run || run.finishedAt || !policy || !tag) return undefined
    const gate = await findPipelineGate(query, job.org)
    if (gate?.paused) return { snoozeSeconds: pausedSeconds }
    if (gate?.overBudget) return { snoozeSeconds: gate.dayLeft + 60 }
    const rows = await untaggedPage(backend.mongo, policy, {
      label: tag.label,
      after: run.after ?? undefined,
      count: pageMax,
    })
    const page = callOf(rows)
    const last = page.at(-1)
    if (!last) {
      await settleTagRun(query, run.id, null)
      return undefined
    }
    try {
      const counts = await applyToPage(backend, { run, policy, tag, page }, signal)
      const next: [number, string] = [last.acquiredAt, last.id]
      await advanceTagRun(query, run, { next, examined: page.length, ...counts })
      pageMax = Math.min(factsPerCall, 2 * pageMax)
    } catch (error) {
      if (!isProviderFault(error)) throw error
      if (!isAboutTexts(error) || page.length === 1) {
        await settleTagRun(query, run.id, error.message)
        return { snoozeSeconds: isAboutTexts(error) ? pausedSeconds : faultSeconds }
      }
      pageMax = Math.ceil(page.length / 2)
    }
    if (backend.now() > end) return { snoozeSeconds: 1 }
  }
}

/** One of the texts may be why: other texts are to be tried. */
const isAboutTexts = (error: unknown): boolean =>
  isAboutPrompt(error) || error instanceof UnusableAnswer

const isProviderFault = (error: unknown): error is Refusal =>
  error instanceof Refusal && ['upstream', 'invalid', 'limited'].includes(error.reason)

type TagPage = { run: TagRun; policy: OrgPolicy; tag: TagRow; page: readonly SharedMemory[] }

async function applyToPage(
  backend: CompletionBackend & SharedMemoryBackend,
  input: TagPage,
  signal: AbortSignal,
): Promise<{ tagged: number; doubtful: number }> {
  const likelihoods = await readLikelihoods(backend, input, signal)
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
  backend: CompletionBackend & SharedMemoryBackend,
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

/** How likely the tag applies to each memory; of one that no model reads it is unknown. */
async function readLikelihoods(
  backend: CompletionBackend,
  input: TagPage,
  signal: AbortSignal,
): Promise<number[]> {
  const texts = input.page.map(({ text }) => text)
  try {
    return await askAboutTexts(backend, input, texts, signal)
  } catch (error) {
    if (!isAboutTexts(error) || texts.length > 1) throw error
    // A provider that fails for other words too fails for all, and the run waits for it.
    await askAboutTexts(backend, input, [input.tag.label], signal)
    return [unknownLikelihood]
  }
}

async function askAboutTexts(
  backend: CompletionBackend,
  { run, policy, tag }: TagPage,
  texts: readonly string[],
  signal: AbortSignal,
): Promise<number[]> {
  const call = { policy, pass: 'tag', model: policy.classifyModel, member: run.createdBy } as const
  const prompt = pagePrompt(tag, texts)
  const question = { instructions: classifyInstructions, ...prompt, schema: tagAnswerSchema(1) }
  const { text } = await meteredCompletion(backend, call, question, signal)
  return readTagAnswer(extractJson(text), texts.length)
}
