import { randomUUID } from 'node:crypto'
import t from 'tap'
import { UuidTable } from '#shared/search/index/uuid-table.ts'

t.test('ids are read back unchanged', async t => {
  const ids = new UuidTable()
  const all = ['00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff']
  for (let i = 0; i < 200; i++) all.push(randomUUID())
  for (const id of all) ids.add(id)
  t.same(
    all.map(id => ids.id(ids.find(id))),
    all,
  )
})

t.test('unknown and dropped ids and invalid UUIDs are not found', async t => {
  const ids = new UuidTable()
  const id = randomUUID()
  ids.drop(ids.add(id))
  t.equal(ids.find(id), -1)
  t.equal(ids.find(randomUUID()), -1)
  t.equal(ids.find('not an id'), -1)
  t.equal(ids.find(id.toUpperCase()), -1)
  t.throws(() => ids.add('not an id'), TypeError)
})
