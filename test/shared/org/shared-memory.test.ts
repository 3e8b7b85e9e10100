import t from 'tap'
import { mintId } from '#shared/core/ids.ts'
import { addShared, deleteShared, retagShared, updateShared } from '#shared/org/shared-memory.ts'
import { sharedByIds } from '#shared/org/shared-memories.mongo.ts'
import { tagSetsOf } from '#shared/vault/base/tag-sets.postgres.ts'
import { testBackend } from '#test/support/backend.ts'
import { buildTeam, share } from '#test/support/team.ts'

const backend = await testBackend(t)
const team = await buildTeam(backend)
const actor = 'ann@example.com'

const auditOf = async (memory: string) =>
  (
    await backend.postgres.query<{ action: string; actor: string }>(
      'select action, actor from audit_events where memory = $1 order by created_at, id',
      [memory],
    )
  ).rows.map(row => `${row.action} ${row.actor}`)

const seed = (text: string, tags: string[] = []) => ({
  text,
  tags,
  confidence: 1,
  author: actor,
  reviewed: true,
  acquiredAt: Date.now(),
})

t.test(
  'a change of each kind is made once and told once, however often it is asked for',
  async t => {
    const operation = mintId()
    const items = [seed('The vault code is 1234', ['security']), seed('Lunch is at noon')]
    const first = await addShared(backend, team, { operation, actor, items })
    const again = await addShared(backend, team, { operation, actor, items })
    t.same(
      again.added.map(({ memory }) => memory.id),
      first.added.map(({ memory }) => memory.id),
    )
    const id = first.added[0]!.memory.id
    const edit = { operation: mintId(), actor, id, text: 'The vault code is 9876' }
    t.match(await updateShared(backend, team, edit), { text: edit.text, tags: ['security'] })
    await updateShared(backend, team, edit)
    const retag = { operation: mintId(), actor, id, tags: ['b', 'a', 'b'] }
    t.same((await retagShared(backend, team, retag)).tags, ['a', 'b'])
    await retagShared(backend, team, retag)
    t.match(await sharedByIds(backend.mongo, team, [id]), [
      { text: edit.text, tags: ['a', 'b'], version: 3 },
    ])
    const removal = { operation: mintId(), actor, id }
    await deleteShared(backend, team, removal)
    await deleteShared(backend, team, removal)
    t.same(await sharedByIds(backend.mongo, team, [id]), [])
    t.same(
      await auditOf(id),
      ['create', 'update', 'retag', 'delete'].map(a => `${a} ${actor}`),
    )
    const counts = await tagSetsOf(backend.postgres.query, team)
    t.same(
      counts.filter(({ memories }) => memories > 0),
      [{ tagSet: '[]', tags: [], memories: 1 }],
    )
  },
)

t.test('twenty changes of one memory at once are twenty changes', async t => {
  const [id] = await share(backend, team, [{ text: 'counted' }])
  await Promise.all(
    Array.from({ length: 6 }, (_, n) =>
      retagShared(backend, team, { operation: mintId(), actor, id: id!, tags: [`tag ${n}`] }),
    ),
  )
  t.equal((await auditOf(id!)).length, 7)
})

t.test('missing: what is not there is neither changed nor removed', async t => {
  const none = { operation: mintId(), actor, id: mintId() }
  await t.rejects(updateShared(backend, team, { ...none, text: 'x' }), {
    reason: 'missing',
  } as never)
  await t.rejects(deleteShared(backend, team, none), { reason: 'missing' } as never)
})
