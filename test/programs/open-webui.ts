import { join } from 'node:path'
import type { Test } from 'tap'
import { startServer } from '#test/programs/chat-world.ts'
import { installPython } from '#test/programs/install.ts'
import { openWebui } from '#test/programs/seen.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

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

export const installOpenWebui = () => installPython([openWebui], models)

type Message = { role: string; content: string; done?: boolean; error?: { content: string } }
type Chat = { id: string; chat: { history: { messages: Record<string, Message> } } }
export type Account = { id: string; token: string }

/** Starts Open WebUI with these variables, and signs up two people, of whom the first is its administrator. */
export async function startOpenWebui(
  t: Test,
  environment: string,
  { folder, model, ...options }: { folder: string; model: string; env: NodeJS.ProcessEnv },
) {
  const origin = await startServer(t, join(environment, 'bin/open-webui'), {
    args: port => ['serve', '--host', '127.0.0.1', '--port', port],
    live: '/health',
    cwd: folder,
    env: {
      DATA_DIR: folder,
      WEBUI_SECRET_KEY: '0123456789abcdef',
      OFFLINE_MODE: 'true',
      ENABLE_OLLAMA_API: 'false',
      BYPASS_MODEL_ACCESS_CONTROL: 'true',
      RAG_EMBEDDING_ENGINE: 'openai',
      ...options.env,
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
  return { origin, request, ada, ben, ask }
}
