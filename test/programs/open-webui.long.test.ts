import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import t from 'tap'
import {
  connectProgram,
  keepApart,
  startChatWorld,
  type Person,
} from '#test/programs/chat-world.ts'
import { installOpenWebui, startOpenWebui, type Account } from '#test/programs/open-webui.ts'
import { noteSeen, openWebui } from '#test/programs/seen.ts'
import { readFromWhole } from '#test/support/samples/import-lines.ts'
import { defaultReply } from '#test/support/doubles/model-provider/fixtures.ts'
import { waitUntilIdle } from '#test/support/checks/observe-jobs.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

/**
 * Open WebUI as a program, with the variables that `connect` writes: two people, its titles, tags and follow-ups,
 * its tools over MCP, an error, and its export moved in.
 */

t.setTimeout(1_200_000)
const installed = await installOpenWebui()
const skip = 'missing' in installed && installed.missing

t.test('Open WebUI', { skip, timeout: 900_000 }, async t => {
  const world = await startChatWorld(t)
  const { provider, backend } = world
  const folder = t.testdir({})
  t.comment(await connectProgram('open-webui', folder, world))
  const { folder: environment } = installed as { folder: string }
  const { origin, request, ada, ben, ask } = await startOpenWebui(t, environment, {
    folder,
    model: 'openai/gpt-4o',
    env: parseEnv(readFileSync(join(folder, '.env'), 'utf8')),
  })

  const posts = () => provider.requests.filter(({ method }) => method === 'POST')
  const asPerson = (account: Account): Person => ({
    id: account.id,
    say: async words => {
      const before = posts().length
      const { content } = await ask(account, words)
      // The answer, a title, tags and follow-ups.
      await waitUntil('its helpers have run', () => posts().length >= before + 4)
      return content
    },
  })

  await t.test('two people, with titles, tags and follow-ups', async t => {
    const models = (await request('/api/models', ben.token)) as { data: { id: string }[] }
    t.ok(models.data.some(({ id }) => id === 'openai/gpt-4o'))
    await keepApart(t, world, asPerson(ada), asPerson(ben))
    t.match(
      provider.requests.filter(({ body }) => body.includes('### Task:')).length,
      12,
      'each turn had three helpers',
    )
  })

  await t.test('its tools are those of MCP, of the person who asks', async t => {
    const server = { tool_ids: ['server:mcp:memory'] }
    await ask(ada, 'call memory_search {"query":"spare key"}', server)
    const told = provider.requests.map(({ body }) => body.toString())
    const result = told.find(body => body.includes('"role":"tool"')) ?? ''
    t.match(result, 'behind the clock')
    t.notMatch(result, 'under the mat')
    await waitUntilIdle(backend)
  })

  await t.test('what is refused is said in words', async t => {
    const { error } = await ask(ada, 'Hello', { params: { temperature: 9 } })
    t.match(error, { content: /temperature/ })
  })

  await t.test('its export moves in', async t => {
    await waitUntilIdle(backend)
    const answer = await fetch(`${origin}/api/v1/chats/all`, {
      headers: { authorization: `Bearer ${ben.token}` },
    })
    // Its page makes one list of the lines, and one file of the list.
    const chats = (await answer.text()).split('\n').filter(line => line !== '')
    const { lines, lost, strangers } = await readFromWhole('open-webui', `[${chats.join(',')}]`)
    t.same({ lost, strangers }, { lost: {}, strangers: [] })
    t.same(lines.map(({ role, content }) => `${role}: ${content}`).toSorted(), [
      `assistant: ${defaultReply}`,
      `assistant: ${defaultReply}`,
      'user: My spare key lies under the mat.',
      'user: Where is my spare key?',
    ])
  })
  if (t.passing()) noteSeen(openWebui)
})
