import { Refusal } from '#shared/core/errors.ts'
import { countTokens } from '#shared/core/tokens.ts'
import type { Admin } from '#shared/access/admin.ts'
import {
  changePolicy,
  requireOrganization,
  recordPolicyEvent,
} from '#shared/org/base/policy-change.ts'
import { countUntagged } from '#shared/org/memories/shared-lists.mongo.ts'
import { tagPrompt, type TagQuestion } from '#shared/org/pipeline/tag-prompt.ts'
import {
  findLatestTagRun,
  findTagRun,
  insertTagRun,
  type TagRun,
} from '#shared/org/pipeline/tag-runs.postgres.ts'
import { requireTag } from '#shared/org/admin/tag.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'

type OrgTagRequest = { admin: Admin; org: string; tag: string }

/** Memories that one call asks about, and tokens of their texts where there is more than one. */
export const factsPerCall = 20
const callTokensMax = 8_000

/** The first memories, as many as one call asks about: one at least. */
export function callOf<Memory extends { tokens: number }>(memories: readonly Memory[]): Memory[] {
  let sum = 0
  const over = memories.findIndex(({ tokens }) => (sum += tokens) > callTokensMax)
  return memories.slice(0, over === -1 ? undefined : Math.max(1, over))
}

/** The prompt of a call that asks one tag of memories. */
export const pagePrompt = (tag: TagQuestion, texts: readonly string[]) =>
  tagPrompt([tag], { facts: texts.map((text, fact) => ({ fact, text })) })

/**
 * How many memories have not got a tag, and what asking about them would cost.
 *
 * @throws Refusal `missing`; `unavailable` when the memory store is out of reach.
 */
export async function estimateTagRun(
  { postgres, mongo }: Stores,
  { admin, org: id, tag: tagId }: OrgTagRequest,
): Promise<{ memories: number; calls: number; inputTokens: number }> {
  const org = await requireOrganization(postgres.query, admin, id)
  const tag = await requireTag(postgres.query, org.id, tagId)
  const { memories, tokens } = await countUntagged(mongo, org, tag.label)
  const calls = Math.ceil(Math.max(memories / factsPerCall, tokens / callTokensMax))
  return {
    memories,
    calls,
    inputTokens: calls * countTokens(pagePrompt(tag, []).userPrompt) + tokens,
  }
}

/**
 * Accepts a run: a job asks the tag of every memory that has not got it. Repeated under the same operation
 * it answers with the run that it made.
 *
 * @param operation becomes the run's id
 * @throws Refusal `missing`; `conflict` while another run of the tag is under way.
 */
export async function startTagRun(
  backend: Stores & { queue: Queue },
  request: OrgTagRequest,
  operation: string,
): Promise<TagRun> {
  const { query } = backend.postgres
  const existing = await findTagRun(query, operation)
  if (existing) return existing
  const { memories } = await estimateTagRun(backend, request)
  const { admin, org, tag } = request
  const conflictMessage = 'This tag is being asked of all memories already'
  await changePolicy(backend, { admin, org, conflictMessage }, async tx => {
    await insertTagRun(tx, { id: operation, org, tag, createdBy: admin.email, memories })
    await recordPolicyEvent(tx, request, {
      action: 'tag.applied',
      subject: tag,
      before: null,
      after: { memories },
    })
    const data = { org: org.toLowerCase(), run: operation }
    await backend.queue.send(tx, 'org-tag-run', [
      { id: operation, data, priority: 0, group: data.org },
    ])
  })
  return (await findTagRun(query, operation))!
}

/**
 * The newest run of a tag.
 *
 * @throws Refusal `missing`.
 */
export async function readTagRun(
  { postgres: { query } }: Pick<Stores, 'postgres'>,
  { admin, org, tag: id }: OrgTagRequest,
): Promise<TagRun> {
  const { id: orgId } = await requireOrganization(query, admin, org)
  const tag = await requireTag(query, orgId, id)
  const run = await findLatestTagRun(query, tag.id)
  if (run) return run
  throw new Refusal('missing', 'This tag was never asked of all memories', 'POST …/apply does it')
}
