import t from 'tap'
import { mintId } from '#shared/core/ids.ts'
import { hashKey } from '#shared/access/key.ts'
import { savePassResults } from '#shared/org/base/org-turns.postgres.ts'
import { insertRetrievals } from '#shared/org/trail/shared-retrievals.postgres.ts'
import { sweepAll } from '#workers/sweep-all.ts'
import { createTestClient } from '#test/support/start/api.ts'
import { buildTeam, seedTeamMemories, type Team } from '#test/support/start/team.ts'
import { insertTurns } from '#shared/vault/ingest/member-turns.postgres.ts'
import { ageRows, endTurn } from '#test/support/checks/alter.ts'
import { existingTurns } from '#test/support/checks/observe.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, base } = await startService(t, { jobs: [] })
const { query } = backend.postgres
const team = await buildTeam(backend)
const admin = createTestClient(base, team.adminKey)
const path = `/v1/orgs/${team.org}/debug/passes`
const ann = await team.addMember('ann@example.com')
const bob = await team.addMember('bob')

async function turn(key: string): Promise<string> {
  const id = mintId()
  const keyHash = hashKey(backend.config.keyPepper, key)
  await backend.postgres.transaction(tx =>
    insertTurns(tx, [{ id, keyHash, saidAt: Date.now(), leftOut: 0 }]),
  )
  return id
}

const retrieval = ({ org }: Team, author: string, createdAt: number) =>
  insertRetrievals(query, [
    {
      id: mintId(),
      org,
      author,
      allowedTags: ['launch'],
      wildcard: false,
      permitted: 2,
      dropped: 1,
      sample: [{ id: mintId(), tags: ['finance'] }],
      request: 'search',
      returned: [],
      question: null,
      denied: [],
      createdAt,
    },
  ])

t.test('200: both kinds, newest first, of everybody or of one member', async t => {
  t.match(await admin.get(path), { status: 200, body: { org_id: team.org, count: 0, passes: [] } })
  // In one millisecond their ids decide, which are random then.
  const first = await turn(ann)
  await ageRows(backend, 'org_turns', '2 seconds', { id: first })
  await retrieval(team, 'ann@example.com', Date.now() - 1_000)
  const last = await turn(bob)
  const tagIds = [mintId()]
  const fact = { text: 'The floor is 3', confidence: 0.9 }
  await savePassResults(backend.postgres, first, {
    pass1: [{ ...fact, note: false }],
    pass2: [{ ...fact, tags: ['launch'], tagIds }],
    pass3: [{ text: 'The floor is 4', action: 'UPDATE', mem_id: first, version: 3 }],
  })

  const { body } = await admin.get(path)
  t.match(body.passes, [
    { kind: 'write', turn_id: last, author: 'bob', pass1: null, pass2: null, pass3: null },
    {
      kind: 'retrieval',
      author: 'ann@example.com',
      allowed_tags: ['launch'],
      wildcard: false,
      permitted: 2,
      dropped: 1,
      dropped_sample: [{ tags: ['finance'] }],
    },
    { kind: 'write', turn_id: first },
  ])
  t.same(body.passes[2].pass1, [{ ...fact, note: false }])
  t.same(body.passes[2].pass2, [{ ...fact, tags: ['launch'] }])
  t.same(body.passes[2].pass3, [{ text: 'The floor is 4', action: 'UPDATE', mem_id: first }])

  const authors = async (search: string): Promise<string[]> =>
    (await admin.get(path + search)).body.passes.map(({ author }: { author: string }) => author)
  t.same(await authors('?author=bob'), ['bob'])
  t.same(await authors('?author=ann%40example.com'), ['ann@example.com', 'ann@example.com'])
  t.equal((await authors('?author=Ann%40Example.COM')).length, 2, 'an email is one in any case')
  t.same(await authors('?author=BOB'), [], 'and no other name is')
  t.same(await authors('?author=nobody'), [])
  t.same(await authors('?limit=1'), ['bob'])
  t.same(await authors('?state=waiting'), ['bob', 'ann@example.com'], 'turns alone')
  t.same(await authors('?state=waiting&author=bob'), ['bob'])
  t.same(await authors('?state=done'), [])
})

t.test('200: the trail of each memory that one fact changed', async t => {
  const own = await buildTeam(backend)
  const [first, second] = await seedTeamMemories(backend, own, [
    { text: 'The floor is 4', confidence: 0.5, reviewed: false },
    { text: 'Offers end at 4', confidence: 0.5, reviewed: false },
  ])
  const id = await turn(await own.addMember('cat'))
  const fact = { text: 'The floor is 4', confidence: 0.5 }
  await savePassResults(backend.postgres, id, {
    pass1: [{ ...fact, note: false }],
    pass2: [{ ...fact, tags: [], tagIds: [] }],
    pass3: [
      {
        text: 'The floor is 4',
        action: 'UPDATE',
        mem_id: first!,
        version: 1,
        also: [{ text: 'Offers end at 4', mem_id: second!, version: 1 }],
      },
    ],
  })
  const { get } = createTestClient(base, own.adminKey)
  const queue = (await get(`/v1/orgs/${own.org}/memories/review`)).body.review
  t.same(queue.map(({ mem_id }: { mem_id: string }) => mem_id).sort(), [first, second].sort())
  const changed = { text: 'The floor is 4', action: 'UPDATE', mem_id: first, also: [second] }
  for (const { pass } of queue) {
    t.same(pass.pass1, [{ ...fact, note: false }])
    t.same(pass.pass3, [changed])
  }
  const { passes } = (await get(`/v1/orgs/${own.org}/debug/passes`)).body
  t.same(passes[0].pass3, [changed])
})

t.test('200: at most as many as are asked for, 20 unless told', async t => {
  for (let n = 0; n < 25; n++) await turn(ann)
  t.equal((await admin.get(path)).body.count, 20)
  t.equal((await admin.get(`${path}?limit=200`)).body.count, 28)
})

t.test(
  'a turn is shown for 30 days after its end, and one without an end for as long as it may be redriven',
  async t => {
    const [done, open, ancient] = [await turn(bob), await turn(bob), await turn(bob)]
    await endTurn(backend, done)
    for (const id of [done, open]) await ageRows(backend, 'org_turns', '31 days', { id })
    await ageRows(backend, 'org_turns', '401 days', { id: ancient })
    t.match(await sweepAll(backend), { turns: 2 })
    t.same(await existingTurns(backend, [done, open, ancient]), [open])
  },
)
