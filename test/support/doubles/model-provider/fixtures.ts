import type { LLMock } from '@copilotkit/aimock'

/** The text of answers without a script; it has characters of one to four bytes. */
export const defaultReply = 'Noted. Crème brûlée, 東京 and a 🦊 will be remembered.'

/** One transparent pixel, as PNG in base64. */
export const pngPixel =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

const weather = { city: 'Lisbon', sunny: true }

/** Fixed, so that two calls get the same bytes; `usage` has the field names of all families. */
const envelope = {
  id: 'answer_1',
  created: 1_700_000_000,
  usage: {
    prompt_tokens: 21,
    completion_tokens: 9,
    input_tokens: 21,
    output_tokens: 9,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens_details: { reasoning_tokens: 0 },
    promptTokenCount: 21,
    candidatesTokenCount: 9,
  },
}

/** The call of a tool that the last words of a user ask for. */
function callIn(messages: readonly { role: string; content: unknown }[]) {
  const said = JSON.stringify(messages.findLast(({ role }) => role === 'user')?.content ?? '')
  const found = /call (\w+) (\{.*\})/s.exec(said.replaceAll('\\"', '"').replaceAll('\\\\', '\\'))
  return found ? { name: found[1]!, arguments: found[2]! } : undefined
}

/** Sets the answers of the double: a tool call, the answer after its result, structured and default ones. */
export function scriptMock(mock: LLMock): void {
  mock.on(
    // The mock omits results with Gemini's role `function`, so the call is the last message.
    {
      predicate: ({ messages }) =>
        messages.at(-1)?.role === 'tool' || messages.at(-1)?.tool_calls !== undefined,
    },
    { ...envelope, content: 'The forecast says sun.' },
  )
  mock.on(
    { predicate: ({ tools }) => (tools?.length ?? 0) > 0, userMessage: 'weather' },
    ({ model }) => ({
      ...envelope,
      toolCalls: [{ id: 'call_1', name: 'forecast', arguments: '{"city":"Lisbon","days":2}' }],
      // Gemini has no special finish reason for function calls.
      ...(model.startsWith('gemini') && { finishReason: 'stop' }),
    }),
  )
  // `call NAME {…}`: the tool of that name with these arguments.
  mock.on(
    {
      predicate: ({ messages, tools }) =>
        (tools?.length ?? 0) > 0 && callIn(messages) !== undefined,
    },
    ({ messages, model }) => ({
      ...envelope,
      toolCalls: [{ id: 'call_1', ...callIn(messages)! }],
      ...(model.startsWith('gemini') && { finishReason: 'stop' }),
    }),
  )
  mock.on({ userMessage: 'as an object' }, { ...envelope, content: JSON.stringify(weather) })
  mock.on(
    { userMessage: 'think' },
    { ...envelope, content: defaultReply, reasoning: 'A secret thought.' },
  )
  mock.on(
    { endpoint: 'chat', predicate: () => true },
    { ...envelope, content: defaultReply },
    { chunkSize: 7 },
  )
  mock.onSpeech('', {
    audio: Buffer.from([0xff, 0xfb, 0, 1, 0x80]).toString('base64'),
    format: 'mp3',
  })
  mock.onTranscription({ transcription: { text: 'hello from a file' } })
  mock.onImage('', { image: { url: 'https://images.example/1.png' } })
  mock.onEmbedding(/./, { embedding: [0.25, -0.5, 0.125] })
}
