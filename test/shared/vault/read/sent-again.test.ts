import t from 'tap'
import { buildKey, createTestClient } from '#test/support/start/api.ts'
import { insertMemories } from '#test/support/start/insert-memories.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, base } = await startService(t, { jobs: [] })

t.test('a turn that was stored with the marks of a program is not told beside itself', async t => {
  const key = await buildKey(backend)
  const said = '<system-reminder>\nUse tabs.\n</system-reminder>\nMy bicycle is orange.'
  await insertMemories(backend, key, [{ text: said }, { text: 'My bicycle is in the cellar.' }])
  const { body } = await createTestClient(base, key).post('/v1/memory/prepare', {
    messages: [
      { role: 'user', content: said },
      { role: 'assistant', content: 'Noted.' },
      { role: 'user', content: 'Where is my bicycle?' },
    ],
  })
  t.match(body.context, 'in the cellar')
  t.notMatch(body.context, 'orange')
})
