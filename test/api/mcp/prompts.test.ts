import t from 'tap'
import { buildKey, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { connectMcp } from '#test/support/start/mcp.ts'

const backend = await createTestBackend(t)
const { base } = await startTestApi(t, backend)
const key = await buildKey(backend)

t.test('prompts are listed with their arguments, where their tools are shown', async t => {
  const namesOf = async (presented: string, query = '') => {
    const client = await connectMcp(t, base, presented, { query })
    return (await client.listPrompts()).prompts.map(({ name }) => name)
  }
  t.same(await namesOf(key), ['recall', 'about_me', 'forget'])
  t.same(await namesOf(`${key}:read`), ['recall', 'about_me'])
  t.same(await namesOf(`${key}:write`), [])
  t.same(await namesOf(key, '?tools=search'), ['recall'])
  const client = await connectMcp(t, base, key)
  const { prompts } = await client.listPrompts()
  t.match(prompts[0], { title: String, arguments: [{ name: 'subject', required: true }] })
})

t.test('a prompt becomes a message that names what to do with which tool', async t => {
  const client = await connectMcp(t, base, key)
  const textOf = async (name: string, args?: Record<string, string>) => {
    const { messages } = await client.getPrompt({ name, arguments: args })
    t.match(messages, [{ role: 'user', content: { type: 'text' } }])
    return (messages[0]!.content as { text: string }).text
  }
  t.match(
    await textOf('recall', { subject: ' the boat $& ' }),
    /Search my memory for this: the boat \$&\n/,
  )
  t.match(await textOf('about_me'), /`profile`/)
  t.match(
    await textOf('forget', { what: 'my address' }),
    /my address\n[^]*only after I have confirmed/,
  )
  await t.rejects(textOf('recall', { subject: ' ' }), /needs subject/)
  await t.rejects(textOf('constructor'), /no prompt constructor/)
  const reader = await connectMcp(t, base, `${key}:read`)
  await t.rejects(
    reader.getPrompt({ name: 'forget', arguments: { what: 'x' } }),
    /no prompt forget/,
  )
})
