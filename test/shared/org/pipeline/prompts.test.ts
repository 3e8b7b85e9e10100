import t from 'tap'
import { storeProviderKey } from '#shared/access/provider-key.ts'
import { startTeamService } from '#test/support/start/working-team.ts'

const { backend, model, newTeam } = await startTeamService(t)

t.test('tags stand before facts, so that the prefix is the same for every fact', async t => {
  const acme = await newTeam(['finance', 'people'])
  model.calls.length = 0
  await acme.share('Fact: floor: 3')
  await acme.share('Fact: a longer story about the roof: it leaks')
  const [first, second] = model.calls
    .filter(({ pass }) => pass === 'tag')
    .map(({ body }) => body.messages.at(-1).content as string)
  t.ok(first!.startsWith('{"questions":'))
  const facts = first!.indexOf('"facts":')
  t.equal(first!.slice(0, facts), second!.slice(0, facts))
})

t.test('the comparison sees who said what and on which day', async t => {
  const acme = await newTeam()
  const bob = await acme.addMember('bob@example.com')
  const timestamp = Date.UTC(2026, 2, 3)
  await acme.share('Fact: launch: in May', { timestamp })
  model.calls.length = 0
  await acme.share('Fact: launch: in June', { as: bob, timestamp: timestamp + 24 * 3600 * 1000 })
  const { userPrompt } = model.calls.find(({ pass }) => pass === 'reconcile')!
  t.match(userPrompt, {
    member: 'bob@example.com',
    said_on: '2026-03-04',
    memories: [{ member: 'ada@example.com', said_on: '2026-03-03', text: 'launch: in May' }],
  })
})

t.test('a long prefix of tags is marked for Claude models to be kept', async t => {
  const acme = await newTeam(['finance'])
  const { query } = backend.postgres
  const keys = { query, seal: backend.seal }
  await storeProviderKey(
    keys,
    { account: acme.account, actor: 'test' },
    'anthropic',
    'sk-ant-0123456789',
  )
  await query(`update orgs set processor_provider = 'anthropic' where id = $1`, [acme.org])
  const promptOf = async (fact: string) => {
    model.calls.length = 0
    await acme.share(fact)
    return model.calls.find(({ pass }) => pass === 'tag')!.body.messages[0].content
  }
  t.type(await promptOf('Fact: floor: 3'), 'string', 'a short one is not')
  await query('update org_tags set question = $2 where org = $1', [acme.org, 'money? '.repeat(600)])
  const [kept, rest] = await promptOf('Fact: roof: red')
  t.match(kept, { text: /^\{"questions":/, cache_control: { type: 'ephemeral' } })
  t.match(JSON.parse(kept.text + rest.text).facts, [{ text: 'roof: red' }])
  t.notOk('cache_control' in rest)
})
