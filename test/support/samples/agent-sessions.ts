/** A call as a client sends it, and what its provider answers. */
export type RecordedCall = {
  path: string
  headers?: Record<string, string>
  body: object
  reply: object
}

/** The calls of a client in one session: two turns of a person, each with two calls of tools or the like. */
export type RecordedSession = {
  client: string
  calls: RecordedCall[]
  said: string[]
  answers: string[]
}

const words = [
  'Remember for later: our staging database is called heron-42. Then read notes.txt.',
  'And who painted the bridge, as the notes have it?',
] as const
const answers = [
  'All done: the bridge is red.',
  'It was painted by two brothers from Porto.',
] as const
const narration = [
  'Let me look at the notes in this folder first.',
  'Now let me check how long that file is.',
]
/** What an agent asks a subagent. */
const task = 'Search the notes for the painter of the bridge.'
const notes = 'The bridge is red. '.repeat(40)

const text = (text: string, more: object = {}) => ({ type: 'text', text, ...more })
const reminder = (about: string) => text(`<system-reminder>\n${about}\n</system-reminder>`)
const user = (content: unknown) => ({ role: 'user', content })
const assistant = (content: unknown, more: object = {}) => ({ role: 'assistant', content, ...more })
const tools = [{ name: 'Bash', input_schema: { type: 'object' } }]

/** The steps of both turns: `grow` adds what a call has brought to the conversation. */
function loops(
  turn: (index: number) => void,
  step: (index: number, text: string) => void,
  end: (index: number) => void,
) {
  for (const index of [0, 1]) {
    turn(index)
    for (const said of narration) step(index, said)
    end(index)
  }
}

function claudeCode(): RecordedSession {
  const path = '/v1/messages?beta=true'
  const headers = {
    'user-agent': 'claude-cli/2.1.330 (external, cli)',
    'anthropic-version': '2023-06-01',
  }
  const message = (content: object[], stop_reason: string) => ({
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    content,
    stop_reason,
  })
  const say = (said: string) => message([text(said)], 'end_turn')
  const model = 'claude-sonnet-4-5'
  const call = (body: object, reply: object): RecordedCall => ({
    path,
    headers,
    body: { model, max_tokens: 32_000, ...body },
    reply,
  })
  const billing = (more = '') =>
    text(`x-anthropic-billing-header: cc_version=2.1.330.1fe; cc_entrypoint=cli;${more}`)
  const system = [billing(), text('You are Claude Code.')]
  const title = {
    system: [
      ...system,
      text('Summarize this coding conversation in under 50 characters.\nCapture the main task.'),
    ],
  }
  const calls = [
    call({ max_tokens: 1, messages: [user('quota')] }, say('Hi')),
    call({ ...title, max_tokens: 512, messages: [user(words[0])] }, say('Reading notes')),
  ]
  const messages: object[] = []
  const ask = (reply: object) =>
    calls.push(call({ system, tools, messages: structuredClone(messages) }, reply))
  loops(
    index => {
      messages.push(
        user([
          reminder(
            "As you answer the user's questions, you can use the following context:\n# claudeMd\nUse tabs.",
          ),
          reminder(`The task list is empty. (${index})`),
          text(words[index]!, { cache_control: { type: 'ephemeral' } }),
        ]),
      )
    },
    (_, said) => {
      const use = {
        type: 'tool_use',
        id: `toolu_${messages.length}`,
        name: 'Bash',
        input: { command: 'cat notes.txt' },
      }
      ask(message([text(said), use], 'tool_use'))
      const result = {
        type: 'tool_result',
        tool_use_id: use.id,
        content: `${notes}<total_tokens>180000 tokens left</total_tokens>`,
      }
      messages.push(
        assistant([text(said), use]),
        user([result, reminder('The file notes.txt was opened.')]),
      )
    },
    index => {
      ask(say(answers[index]!))
      messages.push(assistant([text(answers[index]!)]))
    },
  )
  messages.push(
    user(
      'Your task is to create a detailed summary of the conversation so far, paying close attention to the requests.',
    ),
  )
  ask(say('<summary>The user asked for the bridge.</summary>'))
  const fetched = `Web page content:\n---\n${'Buy our bridges now. '.repeat(50)}\n---\n\nWho painted it?`
  calls.push(call({ messages: [user(fetched)] }, say('An advertising page.')))
  const policy = '<policy_spec>\n# Bash prefix detection\n</policy_spec>\n\nCommand: cat notes.txt'
  calls.push(call({ max_tokens: 512, messages: [user(policy)] }, say('cat')))
  const subagent = call({ system, tools, messages: [user([text(task)])] }, say('By Ana.'))
  calls.push({ ...subagent, headers: { ...headers, 'x-claude-code-agent-id': 'a1' } })
  // Without the header the system prompt marks it.
  const marked = [billing(' cc_is_subagent=true;'), ...system.slice(1)]
  calls.push({ ...subagent, body: { ...subagent.body, system: marked } })
  return { client: 'Claude Code', calls, said: [...words], answers: [...answers] }
}

function geminiCli(): RecordedSession {
  const path = (model: string) => `/v1beta/models/${model}:generateContent`
  const content = (...parts: object[]) => ({
    candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP' }],
  })
  const contextOf = (index: number) => ({
    text: `<session_context>\nThis is the Gemini CLI.\nToday's date is Sunday ${index}.\n</session_context>`,
  })
  const calls: RecordedCall[] = []
  const contents: object[] = []
  const ask = (reply: object) =>
    calls.push({
      path: path('gemini-3.8-flash'),
      body: {
        contents: structuredClone(contents),
        tools: [{ functionDeclarations: [{ name: 'run' }] }],
      },
      reply,
    })
  loops(
    index => {
      contents.push({ role: 'user', parts: [contextOf(index), { text: words[index]! }] })
      calls.push({
        path: path('gemini-3.5-flash-lite'),
        body: {
          systemInstruction: {
            parts: [
              { text: 'You are a specialized Task Routing AI. Your sole function is to classify.' },
            ],
          },
          contents: structuredClone(contents),
          generationConfig: {
            responseMimeType: 'application/json',
            responseJsonSchema: { type: 'object' },
          },
        },
        reply: content({ text: '{"reasoning":"simple","model_choice":"flash"}' }),
      })
    },
    (_, said) => {
      const run = { functionCall: { name: 'run', args: { command: 'cat notes.txt' } } }
      ask(content({ text: said }, run))
      const pieces = said
        .match(/.{1,12}/g)!
        .map(piece => ({ role: 'model', parts: [{ text: piece }] }))
      const response = { functionResponse: { name: 'run', response: { output: notes } } }
      contents.push(...pieces, { role: 'model', parts: [run] }, { role: 'user', parts: [response] })
    },
    index => {
      ask(content({ text: answers[index]! }))
      contents.push({ role: 'model', parts: [{ text: answers[index]! }] })
    },
  )
  return { client: 'Gemini CLI', calls, said: [...words], answers: [...answers] }
}

const completion = (content: string, toolCalls?: object[]) => ({
  object: 'chat.completion',
  choices: [
    {
      index: 0,
      finish_reason: toolCalls ? 'tool_calls' : 'stop',
      message: { role: 'assistant', content, ...(toolCalls && { tool_calls: toolCalls }) },
    },
  ],
  usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
})

function opencode(): RecordedSession {
  const path = '/v1/chat/completions'
  const headers = {
    'user-agent': 'opencode/1.18.33 ai-sdk/openai-compatible',
    'x-session-id': 'ses_4f21c0ffee',
    'x-session-affinity': 'ses_4f21c0ffee',
  }
  const model = 'gpt-5-mini'
  const system = { role: 'system', content: 'You are opencode.' }
  const titleSystem = {
    role: 'system',
    content: 'You are a title generator. You output ONLY a thread title.',
  }
  const quoted = (index: number) => user(`"${words[index]!}"`)
  const calls: RecordedCall[] = [
    {
      path,
      headers,
      body: {
        model,
        max_tokens: 32_000,
        messages: [titleSystem, user('Generate a title for this conversation:\n'), quoted(0)],
      },
      reply: completion('Notes of the day'),
    },
  ]
  const messages: object[] = [system]
  const ask = (reply: object) =>
    calls.push({
      path,
      headers,
      body: { model, tools: [{ type: 'function' }], messages: structuredClone(messages) },
      reply,
    })
  loops(
    index => messages.push(quoted(index)),
    (_, said) => {
      const toolCalls = [
        {
          id: `call_${messages.length}`,
          type: 'function',
          function: { name: 'bash', arguments: '{}' },
        },
      ]
      ask(completion(said, toolCalls))
      messages.push(assistant(said, { tool_calls: toolCalls }), {
        role: 'tool',
        tool_call_id: toolCalls[0]!.id,
        content: notes,
      })
    },
    index => {
      ask(completion(answers[index]!))
      messages.push(assistant(answers[index]!))
    },
  )
  const subagent = { model, tools: [{ type: 'function' }], messages: [system, user(task)] }
  const parent = { 'x-parent-session-id': 'ses_4f21c0ffee', 'x-session-id': 'ses_5a' }
  calls.push({
    path,
    headers: { ...headers, ...parent },
    body: subagent,
    reply: completion('Ana.'),
  })
  return { client: 'opencode', calls, said: words.map(said => `"${said}"`), answers: [...answers] }
}

function codex(): RecordedSession {
  const path = '/v1/responses'
  const inputText = (role: string, said: string) => ({
    type: 'message',
    role,
    content: [{ type: 'input_text', text: said }],
  })
  const outputText = (said: string) => ({
    type: 'message',
    role: 'assistant',
    content: [{ type: 'output_text', text: said }],
  })
  const calls: RecordedCall[] = []
  const input: object[] = [
    {
      type: 'additional_tools',
      role: 'developer',
      tools: [{ type: 'namespace', name: 'functions', tools: [] }],
    },
    inputText('developer', '<permissions instructions>\nAsk first.\n</permissions instructions>'),
    inputText(
      'user',
      '# AGENTS.md instructions for /home/me\n\n<INSTRUCTIONS>\nUse tabs.\n</INSTRUCTIONS>',
    ),
    inputText('user', '<environment_context>\n  <cwd>/home/me</cwd>\n</environment_context>'),
  ]
  const ask = (...output: object[]) =>
    calls.push({
      path,
      headers: { 'session-id': '0199', 'thread-id': '0199' },
      body: {
        model: 'gpt-5-mini',
        store: false,
        prompt_cache_key: '0199',
        input: structuredClone(input),
      },
      reply: {
        id: 'resp_1',
        object: 'response',
        status: 'completed',
        output,
        usage: { input_tokens: 10, output_tokens: 5 },
      },
    })
  loops(
    index => input.push(inputText('user', words[index]!)),
    (_, said) => {
      const use = {
        type: 'custom_tool_call',
        call_id: `c${input.length}`,
        name: 'exec',
        input: 'cat notes.txt',
      }
      ask(outputText(said), use)
      const output = {
        type: 'custom_tool_call_output',
        call_id: use.call_id,
        output: [{ type: 'input_text', text: notes }],
      }
      input.push(
        { type: 'reasoning', summary: [], encrypted_content: 'x' },
        outputText(said),
        use,
        output,
      )
    },
    index => {
      ask(outputText(answers[index]!))
      input.push(outputText(answers[index]!))
    },
  )
  input.splice(0, input.length, inputText('user', task))
  ask(outputText('By Ana.'))
  calls.at(-1)!.headers = { 'session-id': '0200', 'x-openai-subagent': 'collab_spawn' }
  return { client: 'Codex', calls, said: [...words], answers: [...answers] }
}

function openWebUi(): RecordedSession {
  const path = '/v1/chat/completions'
  const model = 'gpt-5-mini'
  const calls: RecordedCall[] = []
  const messages: object[] = []
  for (const [index, said] of words.entries()) {
    messages.push(user(said))
    calls.push({
      path,
      body: { model, messages: structuredClone(messages) },
      reply: completion(answers[index]!),
    })
    messages.push(assistant(answers[index]!))
    const history = `### Chat History:\n<chat_history>\nUSER: ${said}\nASSISTANT: ${answers[index]!}\n</chat_history>`
    for (const [task, reply] of [
      [
        'Generate a concise, 3-5 word title with an emoji summarizing the chat history.',
        '{"title":"Bridge"}',
      ],
      [
        'Generate 1-3 broad tags categorizing the main themes of the chat history.',
        '{"tags":["Bridges"]}',
      ],
      [
        'Suggest 3-5 relevant follow-up questions that the user might naturally ask next.',
        '{"follow_ups":["How long?"]}',
      ],
    ] as const) {
      const content = `### Task:\n${task}\n\n### Guidelines:\n- Use the chat's language.\n\n### Output:\nJSON format\n\n${history}`
      calls.push({
        path,
        body: { model, stream: false, messages: [user(content)] },
        reply: completion(reply),
      })
    }
  }
  return { client: 'Open WebUI', calls, said: [...words], answers: [...answers] }
}

export const recordedSessions: readonly RecordedSession[] = [
  claudeCode(),
  geminiCli(),
  opencode(),
  codex(),
  openWebUi(),
]
