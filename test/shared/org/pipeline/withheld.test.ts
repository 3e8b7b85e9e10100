import t from 'tap'
import { createTestClient } from '#test/support/start/api.ts'
import { startTeamService } from '#test/support/start/working-team.ts'

const { base, newTeam, finished } = await startTeamService(t)

t.test('an anti-rule withholds the answer that matches it; the trail has the reason', async t => {
  const acme = await newTeam()
  const path = `/v1/orgs/${acme.org}`
  await acme.admin.send('PUT', `${path}/instructions`, {
    body: { anti_rules: [{ match: 'salary' }] },
  })
  const ada = createTestClient(base, acme.key)
  const tell = async (said: string, answer: string): Promise<void> => {
    const messages = [
      { role: 'user', content: said },
      { role: 'assistant', content: answer },
    ]
    const { body } = await ada.post('/v1/memory/ingest?wait=true', { messages })
    await finished(body.operation_id)
  }
  await tell('Fact: launch: in May', 'Noted')
  await tell('Fact: office: moves to Hamburg', 'That will change salaries')
  await tell('Fact: salаries: of the team are 5', 'Noted')
  const texts = (await acme.memories()).map(({ text }) => text)
  t.same(texts, ['launch: in May', 'office: moves to Hamburg'])
  const { passes } = (await acme.admin.get(`${path}/debug/passes`)).body
  const writes = passes.filter(({ kind }: { kind: string }) => kind === 'write')
  t.match(writes, [
    { withheld: 'turn', pass1: [] },
    { withheld: 'answer' },
    { withheld: undefined },
  ])
})
