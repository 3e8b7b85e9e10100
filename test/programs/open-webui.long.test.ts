import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import t from 'tap'
import {
  connectProgram,
  keepApart,
  startChatWorld,
  startServer,
  type Person,
} from '#test/programs/chat-world.ts'
import { installPython } from '#test/programs/install.ts'
import { noteSeen, openWebui } from '#test/programs/seen.ts'
import { readFromWhole } from '#test/support/import-lines.ts'
import { defaultReply } from '#test/support/model-provider/fixtures.ts'
import { waitUntilIdle } from '#test/support/observe-jobs.ts'
import { waitUntil } from '#test/support/wait-until.ts'

/**
 * Open WebUI as a program, with the variables that `connect` writes: two people, its titles, tags and follow-ups,
 * its tools over MCP, an error, and its export moved in.
 */

t.setTimeout(1_200_000)
/** Libraries for models of its own, which it loads when they are used: gigabytes. */
const models = [
  'torch',
  'accelerate',
  'transformers',
  'sentence-transformers',
  'faster-whisper',
  'rapidocr',
  'opencv-python-headless',
]
const installed = await installPython([openWebui], models)
const skip = 'missing' in installed && installed.missing

type Message = { role: string; content: string; done?: boolean; error?: { content: string } }
type Chat = { id: string; chat: { history: { messages: Record<string, Message> } } }

t.test('Open WebUI', { skip, timeout: 900_000 }, async t => {
  const world = await startChatWorld(t)
  const { provider, backend } = world
  const folder = t.testdir({})
  t.comment(await connectProgram('open-webui', folder, world))
  const { folder: environment } = installed as { folder: string }
  const origin = await startServer(t, join(environment, 'bin/open-webui'), {
    args: port => ['serve', '--host', '127.0.0.1', '--port', port],
    live: '/health',
    cwd: folder,
    env: {
      ...parseEnv(readFileSync(join(folder, '.env'), 'utf8')),
      DATA_DIR: folder,
      WEBUI_SECRET_KEY: '0123456789abcdef',
      OFFLINE_MODE: 'true',
      ENABLE_OLLAMA_API: 'false',
      BYPASS_MODEL_ACCESS_CONTROL: 'true',
      RAG_EMBEDDING_ENGINE: 'openai',
    },
  })

  const request = async (path: string, token?: string, body?: object): Promise<unknown> => {
    const response = await fetch(origin + path, {
      method: body ? 'POST' : 'GET',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      ...(body && { body: JSON.stringify(body) }),
    })
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
    return await response.json()
  }
  type Account = { id: string; token: string }
  const newPerson = (name: string) => ({
    name,
    email: `${name}@example.com`,
    password: 'Correct-horse-9',
    role: 'user',
  })
  const ada = (await request('/api/v1/auths/signup', undefined, newPerson('ada'))) as Account
  const ben = (await request('/api/v1/auths/add', ada.token, newPerson('ben'))) as Account

  /** A new chat as its page begins one, and the answer once it is whole. */
  const ask = async ({ token }: Account, content: string, more: object = {}): Promise<Message> => {
    const [id, own] = [crypto.randomUUID(), crypto.randomUUID()]
    const model = 'openai/gpt-4o'
    const { chat_id: chat } = (await request('/api/chat/completions', token, {
      model,
      stream: true,
      messages: [{ role: 'user', content }],
      parent_id: null,
      id,
      session_id: 'page',
      user_message: {
        id: own,
        parentId: null,
        childrenIds: [],
        role: 'user',
        content,
        models: [model],
      },
      background_tasks: {
        title_generation: true,
        tags_generation: true,
        follow_up_generation: true,
      },
      params: {},
      features: {},
      ...more,
    })) as { chat_id: string }
    let answer: Message | undefined
    await waitUntil('the answer is whole', async () => {
      const found = (await request(`/api/v1/chats/${chat}`, token)) as Chat
      answer = found.chat.history.messages[id]
      return answer?.done === true || answer?.error !== undefined
    })
    return answer!
  }
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
