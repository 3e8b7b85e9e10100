import t from 'tap'
import { Losses } from '#api/import/draft.ts'
import { guessFormat } from '#api/import/formats.ts'
import { formats } from '#scripts/clients/import/formats.ts'

/** Reads lines of sessions, as the programs write them, one file for each list. */
async function read(name: string, ...files: object[][]) {
  const losses = new Losses()
  const lines: Record<string, unknown>[] = []
  const strangers: unknown[] = []
  const opened = files.map((entries, index) => ({
    name: `${index}.jsonl`,
    async *open() {
      yield Buffer.from(entries.map(entry => `${JSON.stringify(entry)}\n`).join(''))
    },
  }))
  for await (const { text } of formats[name]!.read(opened, losses, value => strangers.push(value)))
    lines.push(JSON.parse(text) as Record<string, unknown>)
  t.same(strangers, [])
  const lost = Object.fromEntries(losses.list().map(({ what, count }) => [what, count]))
  return {
    lines,
    lost,
    said: lines.map(({ role, content }) => `${String(role)}: ${String(content)}`),
  }
}

t.test('Claude Code: what a person typed and the last text of each turn', async t => {
  const at = (second: number) => `2026-11-26T05:00:${second}.000Z`
  const line = (uuid: string, type: string, content: unknown, rest: object = {}) => ({
    type,
    uuid,
    sessionId: 's-1',
    cwd: '/gone/api',
    timestamp: at(10 + Number(uuid)),
    isSidechain: false,
    message: { role: type, content },
    ...rest,
  })
  const text = (words: string) => [{ type: 'text', text: words }]
  const session = [
    { type: 'summary', summary: 'About a heron', leafUuid: 'x' },
    line('1', 'user', 'Our database is heron-42.<system-reminder>\nBe brief\n</system-reminder>'),
    line('2', 'assistant', text('I look.')),
    line('3', 'assistant', [{ type: 'tool_use', name: 'Bash', input: {} }]),
    line('4', 'user', [{ type: 'tool_result', content: 'heron' }]),
    line('5', 'user', text('A subagent is asked'), { isSidechain: true }),
    {
      ...line('6', 'attachment', ''),
      attachment: { type: 'queued_command', prompt: 'And its port is 5544.' },
    },
    line('7', 'user', '<task-notification>\n<task-id>1</task-id>\n</task-notification>'),
    line('8', 'assistant', text('Noted.')),
    line('9', 'user', 'Injected by the program', { isMeta: true }),
  ]
  const { lines, said, lost } = await read('claude-code', session, session)
  t.same(said, [
    'user: Our database is heron-42.',
    'assistant: I look.',
    'user: And its port is 5544.',
    'assistant: Noted.',
  ])
  t.match(lines[0], {
    timestamp: '2026-11-26T05:00:11.000Z',
    metadata: {
      source: 'claude-code',
      agent_id: 'claude-code',
      run_id: 's-1',
      repository: '/gone/api',
    },
  })
  t.same(lost, { 'messages that the program wrote': 1 })
  t.equal(guessFormat(session[1], formats), 'claude-code')
})

t.test('Codex: events of a person and of the agent, in the form of each version', async t => {
  const timestamp = '2026-11-26T05:00:56.000Z'
  const event = (payload: object) => ({ timestamp, type: 'event_msg', payload })
  const meta = (id: string, rest: object = {}) => ({
    timestamp,
    type: 'session_meta',
    payload: { id, cwd: '/gone/api', git: { repository_url: 'git@h.org:acme/api.git' }, ...rest },
  })
  const item = (type: string, text: string) =>
    event({ type: 'item_completed', item: { type, content: [{ type: 'Text', text }] } })
  const { lines, said, lost } = await read(
    'codex',
    [
      meta('s-1', { source: 'exec' }),
      { timestamp, type: 'response_item', payload: { type: 'message', role: 'user', content: [] } },
      item('UserMessage', 'Our database is heron-42.'),
      item('AgentMessage', 'I look.'),
      item('AgentMessage', 'Noted.'),
      event({ type: 'task_complete', last_agent_message: 'Noted.' }),
    ],
    [
      meta('s-2', { git: undefined }),
      event({ type: 'user_message', message: 'Its port is 5544.' }),
      item('UserMessage', 'Its port is 5544.'),
      event({ type: 'agent_message', message: 'Noted too.' }),
    ],
    [meta('s-3', { source: { subagent: 'review' } }), item('UserMessage', 'Review this')],
  )
  t.same(said, [
    'user: Our database is heron-42.',
    'assistant: Noted.',
    'user: Its port is 5544.',
    'assistant: Noted too.',
  ])
  t.match(lines[0], { timestamp, metadata: { agent_id: 'codex', repository: 'h.org/acme/api' } })
  t.match(lines[2], { metadata: { run_id: 's-2', repository: '/gone/api' } })
  t.same(lost, { 'texts between tool calls': 1, 'sessions of subagents': 1 })
})

t.test('turns that a person took back are left out, and counted', async t => {
  const line = (uuid: string, parentUuid: string | null, type: string, text: string) => ({
    type,
    uuid,
    parentUuid,
    sessionId: 's-1',
    cwd: '/gone/api',
    timestamp: '2026-11-26T05:00:00.000Z',
    message: { role: type, content: [{ type: 'text', text }] },
  })
  const rewound = await read('claude-code', [
    line('1', null, 'user', 'My boat is red.'),
    line('2', '1', 'assistant', 'Red.'),
    line('3', '2', 'user', 'My bell is loud.'),
    line('4', '3', 'assistant', 'Loud.'),
    line('5', '4', 'user', 'How loud?'),
    line('6', '5', 'assistant', 'Very.'),
    line('7', '2', 'user', 'My bell is quiet.'),
    line('8', '7', 'assistant', 'Quiet.'),
  ])
  t.same(rewound.said, [
    'user: My boat is red.',
    'assistant: Red.',
    'user: My bell is quiet.',
    'assistant: Quiet.',
  ])
  t.same(rewound.lost, { 'turns that were taken back': 2 })
  const anew = await read('claude-code', [
    line('1', null, 'user', 'My bell is loud.'),
    line('2', '1', 'assistant', 'Loud.'),
    line('3', null, 'user', 'My bell is quiet.'),
  ])
  t.same(anew.said, ['user: My bell is quiet.'])

  const event = (type: string, more: object) => ({
    type: 'event_msg',
    timestamp: '2026-11-26T05:00:00.000Z',
    payload: { type, ...more },
  })
  const rolledBack = await read('codex', [
    { type: 'session_meta', payload: { id: 's-2', cwd: '/gone/api' } },
    event('user_message', { message: 'My boat is red.' }),
    event('agent_message', { message: 'Red.' }),
    event('user_message', { message: 'My bell is loud.' }),
    event('agent_message', { message: 'Loud.' }),
    event('thread_rolled_back', { num_turns: 1 }),
    event('user_message', { message: 'My bell is quiet.' }),
    event('agent_message', { message: 'Quiet.' }),
  ])
  t.same(rolledBack.said, rewound.said)
  t.same(rolledBack.lost, { 'turns that were taken back': 1 })
})
