import { join } from 'node:path'
import t from 'tap'
import { keepApart, snippetsOf, startChatWorld, startServer } from '#test/programs/chat-world.ts'
import { installPython } from '#test/programs/install.ts'
import { gradio, noteSeen } from '#test/programs/seen.ts'
import { respondError } from '#test/support/doubles/model-provider/answers.ts'

/** A page of Gradio with the lines of the guide: two people who signed in, and an error. */

t.setTimeout(1_200_000)
const installed = await installPython([gradio, 'openai==3.22.1'])
const skip = 'missing' in installed && installed.missing

t.test('Gradio', { skip, timeout: 900_000 }, async t => {
  const world = await startChatWorld(t)
  const { base, key, provider } = world
  const { folder } = installed as { folder: string }
  const lines = snippetsOf('A page of your own')[0]!
  const launch =
    'page.launch(auth=[("ada", "a-long-word"), ("ben", "a-long-word")], show_error=True, server_port=int(sys.argv[1]))'
  const cwd = t.testdir({ 'page.py': `import sys\n${lines}\n${launch}\n` })
  const origin = await startServer(t, join(folder, 'bin/python'), {
    args: port => ['page.py', port],
    live: '/',
    cwd,
    env: { BASE_URL: base, MEMORY_KEY: key, GRADIO_ANALYTICS_ENABLED: 'False' },
  })

  /** The last event of a call by a person who has signed in, as the page makes it. */
  const call = async (person: string, words: string): Promise<{ event: string; data: string }> => {
    const form = new URLSearchParams({ username: person, password: 'a-long-word' })
    const signIn = await fetch(`${origin}/login`, { method: 'POST', body: form })
    const cookies = signIn.headers.getSetCookie().map(cookie => cookie.split(';')[0])
    const headers = { cookie: cookies.join('; '), 'content-type': 'application/json' }
    const body = JSON.stringify({ data: [words] })
    const url = `${origin}/gradio_api/call/answer`
    const begun = await fetch(url, { method: 'POST', headers, body })
    const { event_id: id } = (await begun.json()) as { event_id: string }
    const events = await (await fetch(`${url}/${id}`, { headers })).text()
    const [, event, data] = /event: (\w+)\ndata: (.*)\s*$/.exec(events)!
    return { event: event!, data: data! }
  }
  const asPerson = (id: string) => ({
    id,
    say: async (words: string) => (JSON.parse((await call(id, words)).data) as string[])[0]!,
  })
  await keepApart(t, world, asPerson('ada'), asPerson('ben'))
  provider.respondNext(respondError('openai', 400))
  t.match(await call('ada', 'Hello'), { event: 'error', data: /told to answer 400/ })
  if (t.passing()) noteSeen(gradio)
})
