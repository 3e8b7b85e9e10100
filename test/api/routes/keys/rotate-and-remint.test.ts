import t from 'tap'
import { createTestClient } from '#test/support/start/api.ts'
import { holdAccountEvents, untilWaiting } from '#test/support/checks/held-rows.ts'
import { startService } from '#test/support/start/start-service.ts'

/* Only the key that the owner puts in the place of a lost one opens its vault, whatever the lost one does meanwhile. */

const { backend, base, newClient } = await startService(t, { jobs: [] })

async function newUser() {
  const owner = await newClient()
  const { account } = await owner.caller()
  const { body: lost } = await owner.post('/v1/keys', { external_id: 'ada' })
  return {
    account,
    lost,
    activeKeys: async () => (await owner.get('/v1/keys?external_id=ada&active=true')).body.items,
    rotate: (body: object) => createTestClient(base, lost.key).post('/v1/keys/rotate', body),
    remint: () => owner.post(`/v1/keys/${lost.id}/remint`),
  }
}

for (const body of [{}, { grace_seconds: 3_600 }]) {
  t.test(
    `a key that is being rotated is replaced with what it becomes: ${JSON.stringify(body)}`,
    async t => {
      const { account, activeKeys, rotate, remint } = await newUser()
      const release = await holdAccountEvents(t, backend, account)
      // The rotation has inserted its key, and waits.
      const rotated = rotate(body)
      await untilWaiting(backend, 1)
      const reminted = remint()
      await untilWaiting(backend, 2)
      await release()
      t.equal((await rotated).status, 201)
      t.equal((await reminted).status, 201)
      t.same(
        (await activeKeys()).map(({ id }: { id: string }) => id),
        [(await reminted).body.id],
      )
      const { key } = (await rotated).body
      t.equal((await createTestClient(base, key).get('/v1/memory/stats')).status, 401)
    },
  )
}

t.test('403: a key that is being replaced does not rotate', async t => {
  const { account, activeKeys, rotate, remint } = await newUser()
  const release = await holdAccountEvents(t, backend, account)
  const reminted = remint()
  await untilWaiting(backend, 1)
  const rotated = rotate({})
  await untilWaiting(backend, 2)
  await release()
  t.equal((await reminted).status, 201)
  t.equal((await rotated).status, 403)
  t.same(
    (await activeKeys()).map(({ id }: { id: string }) => id),
    [(await reminted).body.id],
  )
})
