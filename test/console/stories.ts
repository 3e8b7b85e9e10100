import type { Backend } from '#shared/backend.ts'
import { mintId } from '#shared/core/ids.ts'
import { operatorEmail } from '#shared/access/admin.ts'
import { hashKey } from '#shared/access/key.ts'
import { savePassResults } from '#shared/org/base/org-turns.postgres.ts'
import { insertRetrievals } from '#shared/org/trail/shared-retrievals.postgres.ts'
import { buildAdmin } from '#test/support/start/admin.ts'
import { createTestClient, type TestClient } from '#test/support/start/api.ts'
import { checkOut, commit, ingestTexts } from '#test/support/start/consolidation.ts'
import { insertMemories as put } from '#test/support/start/insert-memories.ts'
import { insertTurns } from '#shared/vault/ingest/member-turns.postgres.ts'

/** Breaks a page that takes a text for markup. */
const hostile =
  '<img src=x onerror="document.title=`taken`"><script>document.title=`taken`</script>'

/** A vault with something of every kind: raw memories, two tiers of reflections, a session. */
export async function fillVault(backend: Backend, api: TestClient, key: string): Promise<void> {
  await ingestTexts(api, [
    'My cat is called Ada and she hates thunder.',
    'We moved to Lisbon in May, to a flat above a bakery.',
    `A note with markup in it: ${hostile}`,
    'The dentist is on Tuesday at nine.',
  ])
  const { body: batch } = await checkOut(api)
  await commit(api, batch.batch_id, [
    { text: 'The user has a cat, Ada, who is afraid of thunder.', importance: 7 },
    { text: 'The user lives in Lisbon above a bakery since May.', importance: 8 },
  ])
  const { body: above } = await checkOut(api, { tier: 2 })
  await commit(api, above.batch_id, [
    { text: 'A person who makes a home for those who need quiet.', importance: 9 },
  ])
  await ingestTexts(api, ['Let us plan the trip to Porto.', 'Trains leave every hour.'], {
    session: 'trip-1',
  })
  // Long enough ago that an age does not get longer, by a token, from one look to the next.
  const at = Date.now() - 90 * 60_000
  await put(backend, key, [
    { text: 'Ada slept through the storm last night.', at },
    { text: 'I have begun to learn Portuguese, twenty minutes every morning.', at: at + 1 },
    { text: 'Long thoughts. '.repeat(80), role: 'assistant', at: at + 2 },
  ])
}

export type Team = {
  org: string
  path: string
  adminKey: string
  admin: TestClient
  waiting: string[]
}

/** A team of which every page of the console has something to show; its admin runs the service too. */
export async function fillTeam(backend: Backend, base: string): Promise<Team> {
  const { key: adminKey } = await buildAdmin(backend, operatorEmail(backend.config))
  const admin = createTestClient(base, adminKey)
  const { org_id: org } = (await admin.post('/v1/orgs', { name: 'Acme' })).body
  const path = `/v1/orgs/${org}`
  const { body: role } = await admin.post(`${path}/roles`, {
    name: 'Accounting',
    allowed_tags: ['finance'],
  })
  await admin.post(`${path}/roles`, { name: 'Board', allowed_tags: ['*'] })
  await admin.post(`${path}/users`, { email: member, role_ids: [role.role_id] })
  const { body: minted } = await admin.post(`${path}/keys`, { team_member_id: member })
  const items = [
    { text: 'The office opens at eight.' },
    {
      text: 'The Q3 budget was cut by a tenth.',
      tags: ['finance'],
      metadata: { source: 'minutes', page: 4 },
    },
    { text: 'The supplier asks for a deposit.', tags: ['finance'], confidence: 0.3 },
    { text: 'The new logo is blue.', tags: ['brand'], confidence: 0.4 },
    { text: `Legal looks at ${hostile}`, confidence: 0.5 },
  ]
  const { body: seeded } = await admin.post(`${path}/memories`, { items })
  const ids: string[] = seeded.items.map(({ mem_id }: { mem_id: string }) => mem_id)
  const waiting = ids.slice(2)
  const of = {
    memory: waiting[0]!,
    correction: waiting[2]!,
    corrected: ids[1]!,
    hidden: waiting[1]!,
  }
  await leaveTrails(backend, { org, key: minted.memory_key, ...of })
  return { org, path, adminKey, admin, waiting }
}

const member = 'ann@example.com'

/** What a turn of a member and an answer to them leave behind. */
async function leaveTrails(
  { postgres, config }: Backend,
  {
    org,
    key,
    memory,
    correction,
    corrected,
    hidden,
  }: Record<'org' | 'key' | 'memory' | 'correction' | 'corrected' | 'hidden', string>,
): Promise<void> {
  const turn = mintId()
  const keyHash = hashKey(config.keyPepper, key)
  await postgres.transaction(tx =>
    insertTurns(tx, [{ id: turn, keyHash, saidAt: Date.now(), leftOut: 0 }]),
  )
  const fact = { text: 'The supplier asks for a deposit.', confidence: 0.9 }
  const other = { text: `Legal looks at ${hostile}`, confidence: 0.5 }
  await savePassResults(postgres, turn, {
    pass1: [fact, other].map(one => ({ ...one, note: false })),
    pass2: [
      { ...fact, confidence: 0.3, tags: ['finance'], tagIds: [mintId()] },
      { ...other, tags: [], tagIds: [] },
    ],
    pass3: [
      { text: fact.text, action: 'ADD', mem_id: memory, version: 1 },
      { text: other.text, action: 'ADD', mem_id: correction, replaces: corrected },
    ],
  })
  const nothing = mintId()
  await postgres.transaction(tx =>
    insertTurns(tx, [{ id: nothing, keyHash, saidAt: Date.now(), leftOut: 0 }]),
  )
  await savePassResults(postgres, nothing, { pass1: [], pass2: [], pass3: [] })
  await insertRetrievals(postgres.query, [
    {
      id: mintId(),
      org,
      author: member,
      allowedTags: ['finance'],
      wildcard: false,
      permitted: 2,
      dropped: 1,
      sample: [
        { id: hidden, tags: ['brand'] },
        { id: mintId(), tags: ['brand'] },
      ],
      request: 'search',
      returned: [corrected],
      question: null,
      denied: [{ id: hidden, tags: ['brand'] }],
      createdAt: Date.now(),
    },
  ])
}
