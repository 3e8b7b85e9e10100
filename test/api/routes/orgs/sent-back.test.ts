import t from 'tap'
import { buildOrg } from '#test/support/start/admin.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, base } = await startService(t)

t.test('a PATCH without fields changes nothing, its time neither', async t => {
  const { admin, path } = await buildOrg(backend, base)
  const before = (await admin.get(path)).body
  t.equal((await admin.send('PATCH', path, { body: {} })).status, 400)
  t.same((await admin.get(path)).body.updated_at, before.updated_at)
})

t.test('the reviewed marker is a flag: true, false, 1 or 0', async t => {
  const { admin, path } = await buildOrg(backend, base)
  await admin.post(`${path}/memories`, { text: 'We sell ferries' })
  const [{ mem_id: id }] = (await admin.get(`${path}/memories`)).body.items
  for (const [reviewed, shown] of [
    [1, true],
    [0, false],
    [true, true],
  ] as const) {
    const patched = await admin.send('PATCH', `${path}/memories/${id}`, { body: { reviewed } })
    t.match(patched, { status: 200, body: { reviewed: shown } }, String(reviewed))
  }
  t.equal(
    (await admin.send('PATCH', `${path}/memories/${id}`, { body: { reviewed: 2 } })).status,
    400,
  )
})
