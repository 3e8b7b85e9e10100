import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { startChatWorld } from '#test/programs/chat-world.ts'
import { installPython } from '#test/programs/install.ts'
import { difyPlugin, noteSeen } from '#test/programs/seen.ts'
import { createTestClient } from '#test/support/start/api.ts'
import { waitUntilIdle } from '#test/support/checks/observe-jobs.ts'

/**
 * The plug-in for Dify, run by Dify's own package as its daemon runs it: lines of JSON over standard input and output.
 * The server of Dify is in no registry.
 */

t.setTimeout(600_000)
const installed = await installPython([difyPlugin])
const skip = 'missing' in installed && installed.missing

type Event = {
  session_id?: string
  event: string
  data: { type?: string; data?: { type?: string; message?: Record<string, unknown> } & object }
}

t.test('the plug-in for Dify', { skip, timeout: 500_000 }, async t => {
  const world = await startChatWorld(t)
  const { backend, base, key, newKey } = world
  const folder = join(t.testdir({}), 'dify')
  cpSync(fileURLToPath(new URL('../../api/client/dify', import.meta.url)), folder, {
    recursive: true,
  })
  const python = join((installed as { folder: string }).folder, 'bin/python')
  const child = spawn(python, ['-B', 'main.py'], {
    cwd: folder,
    env: { PATH: process.env.PATH, HOME: folder, INSTALL_METHOD: 'local' },
  })
  let faults = ''
  child.stderr.on('data', data => (faults += data))
  const waiting = new Map<string, { events: Event[]; settle: () => void }>()
  let manifest: Record<string, unknown> | undefined
  const lines = createInterface({ input: child.stdout })
  lines.on('line', line => {
    if (!line.startsWith('{')) return
    const event = JSON.parse(line) as Event
    manifest ??= event as unknown as Record<string, unknown>
    const call = waiting.get(event.session_id ?? '')
    call?.events.push(event)
    if (['end', 'error'].includes(event.data?.type ?? '')) call?.settle()
  })
  const ended = once(child, 'exit').then(() => {
    for (const { settle } of waiting.values()) settle()
  })
  t.teardown(async () => {
    child.kill('SIGKILL')
    await ended
  })

  /** What the plug-in sends for a request of the daemon. */
  const request = async (data: object): Promise<Event[]> => {
    const session_id = crypto.randomUUID()
    const events: Event[] = []
    const settled = new Promise<void>(settle => waiting.set(session_id, { events, settle }))
    child.stdin.write(`${JSON.stringify({ session_id, event: 'request', data })}\n`)
    await settled
    return events
  }
  const credentials = { url: base, key }
  const invoke = async (
    user_id: string,
    tool: string,
    tool_parameters: object,
    given: object = credentials,
  ): Promise<string> => {
    const events = await request({
      type: 'tool',
      action: 'invoke_tool',
      user_id,
      provider: 'memory_vault',
      tool,
      credentials: given,
      credential_type: 'api-key',
      tool_parameters,
    })
    return JSON.stringify(events)
  }
  const check = async (given: object): Promise<string> =>
    JSON.stringify(
      await request({
        type: 'tool',
        action: 'validate_tool_credentials',
        user_id: 'admin',
        provider: 'memory_vault',
        credentials: given,
      }),
    )

  await t.test('credentials are checked, in words', async t => {
    const own = await newKey()
    t.match(await check(credentials), /"result":true/, faults)
    t.match(await check({ ...credentials, key: own, shared: true }), /"result":true/)
    t.match(await check({ ...credentials, key: own }), /opens one vault for all/)
    t.match(await check({ ...credentials, shared: true }), /names users/)
    t.match(await check({ ...credentials, key: 'mk_wrong' }), /error/)
    t.match(await check({ url: 'http://127.0.0.1:9', key }), /cannot be reached/)
  })

  await t.test('two people remember and recall apart', async t => {
    for (const [user, said] of [
      ['ada', 'My spare key hangs behind the clock.'],
      ['ben', 'My spare key lies under the mat.'],
    ] as const) {
      t.match(await invoke(user, 'remember', { said, answer: 'Noted.' }), 'It is kept.')
    }
    await waitUntilIdle(backend)
    const question = 'Where is my spare key?'
    const told = await invoke('ada', 'recall', { question })
    t.match(told, /memory_context.*behind the clock/)
    t.notMatch(told, 'under the mat')
    t.match(await invoke('ada', 'recall', { question, person: 'ben' }), 'under the mat')
    t.match(await invoke('cai', 'recall', { question }), 'Nothing is remembered of this.')
    const { body } = await createTestClient(base, key).get('/v1/memory/list', {
      'x-memory-user': 'ada',
    })
    t.match(
      (body as { items: { role: string; text: string; metadata: object }[] }).items
        .map(({ role, text }) => `${role}: ${text}`)
        .toSorted(),
      ['assistant: Noted.', 'user: My spare key hangs behind the clock.'],
    )
  })

  await t.test('a shared vault, and what is refused', async t => {
    const shared = { ...credentials, key: await newKey(), shared: true }
    await invoke('ada', 'remember', { said: 'Our boat is called Otter.' }, shared)
    await waitUntilIdle(backend)
    t.match(
      await invoke('ben', 'recall', { question: 'What is our boat called?' }, shared),
      'Otter',
    )
    t.match(await invoke('', 'recall', { question: 'x' }), 'fill in Person')
    t.match(await invoke('ada', 'remember', { said: ' ' }), /error/)
    t.match(await invoke('{{#sys.user_id#}}', 'recall', { question: 'x' }), /error/)
  })
  if (t.passing()) noteSeen(difyPlugin)
})
