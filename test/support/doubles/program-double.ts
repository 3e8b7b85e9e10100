import type { RecordedRequest, Responder } from '#test/support/doubles/recording-server.ts'

type Json = Record<string, unknown>
/** How a program is asked to run a command in its own shell. */
type Shell = { name: string; kind: 'function' | 'custom'; args: Json | string }

const narration = 'Let me look at the folder first.'
const answered = 'All done after look '
/** What the model says at the end of a turn. */
export const finalAnswer = (turn: number): string => `${answered}${turn}, as asked.`

/** The answers of the turns before stand in the request. */
const turnOf = (body: string): number => body.split(answered).length
const aside = 'Notes of the day'

const command = 'echo heron-notes'
const shells: Shell[] = [
  { name: 'exec_command', kind: 'function', args: { cmd: command } },
  { name: 'bash', kind: 'function', args: { command, description: 'Look at the notes' } },
  { name: 'run_shell_command', kind: 'function', args: { command, description: 'Look' } },
  { name: 'Bash', kind: 'function', args: { command, description: 'Look at the notes' } },
  {
    name: 'exec',
    kind: 'custom',
    args: `const seen = await tools.exec_command({ cmd: '${command}' }); text(seen.output)`,
  },
]

const isStructured = (body: string): boolean =>
  body.includes('"responseMimeType":"application/json"')

/** The shell that a request offers, wherever it lists its tools; its history may name one too. */
export const shellIn = (body: string): Shell | undefined =>
  isStructured(body)
    ? undefined
    : shells.find(({ name }) => new RegExp(`"name":\\s?"${name}"`).test(body))

/**
 * A model for real programs: in each turn it calls their shell once and then answers; a call that offers no
 * shell is an aside. Equal conversations get equal answers.
 */
export const respondToProgram: Responder = async (seen, answer) => {
  const { url, body } = seen
  const events = url.includes('/models/')
    ? googleChunks(seen)
    : url.includes('/messages')
      ? messagesEvents(body.toString())
      : url.includes('/chat/completions')
        ? completionEvents(body.toString())
        : responsesEvents(body.toString())
  const isStream = /:stream|"stream":\s?true/.test(url + body.toString('utf8'))
  if (!isStream) {
    answer.head(200, { 'content-type': 'application/json' })
    await answer.write(JSON.stringify(events.at(-1)!.whole))
    return answer.end()
  }
  answer.head(200, { 'content-type': 'text/event-stream; charset=utf-8' })
  for (const { type, data } of events) {
    await answer.write(`${type ? `event: ${type}\n` : ''}data: ${JSON.stringify(data)}\n\n`)
  }
  if (url.includes('/chat/completions')) await answer.write('data: [DONE]\n\n')
  answer.end()
}

/** The last event also has the whole answer, for a call that is not streamed. */
type Event = { type?: string; data: Json; whole?: Json }

function responsesEvents(body: string): Event[] {
  const { input, model } = JSON.parse(body) as { input: Json[]; model: string }
  const shell = shellIn(body)
  const isDone = String(input.at(-1)?.type).endsWith('_call_output')
  const says = !shell ? aside : isDone ? finalAnswer(turnOf(body)) : narration
  const n = input.length
  const message = {
    type: 'message',
    id: `msg_${n}`,
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text: says, annotations: [] }],
  }
  const output: Json[] = shell && !isDone ? [message, shellCall(shell, n)] : [message]
  const usage = {
    input_tokens: 21,
    output_tokens: 9,
    total_tokens: 30,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens_details: { reasoning_tokens: 0 },
  }
  const response = { id: `resp_${n}`, object: 'response', created_at: 1_700_000_000, model, usage }
  const events = [
    { type: 'response.created', response: { ...response, status: 'in_progress', output: [] } },
    ...output.flatMap(itemEvents),
    { type: 'response.completed', response: { ...response, status: 'completed', output } },
  ]
  return events.map((event, sequence_number) => ({
    type: event.type,
    data: { ...event, sequence_number },
    whole: { ...response, status: 'completed', output },
  }))
}

function shellCall({ name, kind, args }: Shell, n: number): Json {
  const call = { id: `fc_${n}`, call_id: `call_${n}`, name, status: 'completed' }
  return kind === 'custom'
    ? { type: 'custom_tool_call', ...call, input: args }
    : { type: 'function_call', ...call, arguments: JSON.stringify(args) }
}

function itemEvents(
  item: Json,
  output_index: number,
): { type: string; [field: string]: unknown }[] {
  const place = { item_id: item.id, output_index }
  const added = { type: 'response.output_item.added', output_index }
  const done = { type: 'response.output_item.done', output_index, item }
  if (item.type === 'function_call') {
    const kind = 'response.function_call_arguments'
    return [
      { ...added, item: { ...item, arguments: '', status: 'in_progress' } },
      { type: `${kind}.delta`, ...place, delta: item.arguments },
      { type: `${kind}.done`, ...place, arguments: item.arguments },
      done,
    ]
  }
  if (item.type === 'custom_tool_call') {
    const kind = 'response.custom_tool_call_input'
    return [
      { ...added, item: { ...item, input: '', status: 'in_progress' } },
      { type: `${kind}.delta`, ...place, delta: item.input },
      { type: `${kind}.done`, ...place, input: item.input },
      done,
    ]
  }
  const [part] = item.content as { text: string }[]
  const at = { ...place, content_index: 0 }
  return [
    { ...added, item: { ...item, content: [], status: 'in_progress' } },
    { type: 'response.content_part.added', ...at, part: { ...part, text: '' } },
    { type: 'response.output_text.delta', ...at, delta: part!.text, logprobs: [] },
    { type: 'response.output_text.done', ...at, text: part!.text, logprobs: [] },
    { type: 'response.content_part.done', ...at, part },
    done,
  ]
}

/** The events of Anthropic's Messages; a title or the like is asked for without a shell. */
function messagesEvents(body: string): Event[] {
  const { messages, model } = JSON.parse(body) as { messages: { content: Json[] }[]; model: string }
  const shell = shellIn(body)
  const last = messages.at(-1)!.content
  const isDone = Array.isArray(last) && last.some(({ type }) => type === 'tool_result')
  const says = !shell ? aside : isDone ? finalAnswer(turnOf(body)) : narration
  const call = shell &&
    !isDone && { type: 'tool_use', id: `toolu_${messages.length}`, name: shell.name }
  const content: Json[] = [
    { type: 'text', text: says },
    ...(call ? [{ ...call, input: shell.args }] : []),
  ]
  const usage = { input_tokens: 21, output_tokens: 9 }
  const stop_reason = call ? 'tool_use' : 'end_turn'
  const message = { id: `msg_${messages.length}`, type: 'message', role: 'assistant', model, usage }
  const whole = { ...message, content, stop_reason, stop_sequence: null }
  const blocks = content.flatMap((block, index) => {
    const isText = block.type === 'text'
    const delta = isText
      ? { type: 'text_delta', text: block.text }
      : { type: 'input_json_delta', partial_json: JSON.stringify(block.input) }
    const content_block = isText ? { ...block, text: '' } : { ...block, input: {} }
    return [
      { type: 'content_block_start', index, content_block },
      { type: 'content_block_delta', index, delta },
      { type: 'content_block_stop', index },
    ]
  })
  const started = { ...message, content: [], stop_reason: null, stop_sequence: null }
  return [
    { type: 'message_start', message: started },
    ...blocks,
    { type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage },
    { type: 'message_stop' },
  ].map(data => ({ type: data.type, data, whole }))
}

/** The chunks of Chat Completions, the last one with the usage. */
function completionEvents(body: string): Event[] {
  const { messages, model } = JSON.parse(body) as { messages: { role: string }[]; model: string }
  const shell = shellIn(body)
  const isDone = messages.at(-1)!.role === 'tool'
  const content = !shell ? aside : isDone ? finalAnswer(turnOf(body)) : narration
  const n = messages.length
  const calls = shell &&
    !isDone && [
      {
        id: `call_${n}`,
        type: 'function',
        function: { name: shell.name, arguments: JSON.stringify(shell.args) },
      },
    ]
  const finish_reason = calls ? 'tool_calls' : 'stop'
  const head = { id: `chatcmpl_${n}`, created: 1_700_000_000, model }
  const message = { role: 'assistant', content, ...(calls && { tool_calls: calls }) }
  const usage = { prompt_tokens: 21, completion_tokens: 9, total_tokens: 30 }
  const whole = {
    ...head,
    object: 'chat.completion',
    choices: [{ index: 0, message, finish_reason }],
    usage,
  }
  const deltas = [
    { delta: { role: 'assistant', content }, finish_reason: null },
    ...(calls ? [{ delta: { tool_calls: [{ index: 0, ...calls[0] }] }, finish_reason: null }] : []),
    { delta: {}, finish_reason },
  ]
  const chunks = deltas.map(one => ({ choices: [{ index: 0, ...one }] }))
  return [...chunks, { choices: [], usage }].map(chunk => ({
    data: { ...head, object: 'chat.completion.chunk', ...chunk },
    whole,
  }))
}

type GooglePart = { text?: string; functionResponse?: object }

function googleChunks({ body }: RecordedRequest): Event[] {
  const text = body.toString()
  const { contents } = JSON.parse(text) as { contents: { parts: GooglePart[] }[] }
  const shell = shellIn(text)
  const isDone = contents.at(-1)!.parts.some(part => part.functionResponse)
  const says = isStructured(text)
    ? JSON.stringify({ reasoning: 'simple', model_choice: 'flash' })
    : !shell
      ? aside
      : isDone
        ? finalAnswer(turnOf(text))
        : narration
  const call = shell && !isDone && { functionCall: { name: shell.name, args: shell.args } }
  const content = { role: 'model', parts: [{ text: says }, ...(call ? [call] : [])] }
  const usageMetadata = { promptTokenCount: 21, candidatesTokenCount: 9, totalTokenCount: 30 }
  const whole = { candidates: [{ content, finishReason: 'STOP', index: 0 }], usageMetadata }
  return [{ data: whole, whole }]
}
