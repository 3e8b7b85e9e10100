import type { Responder } from '#test/support/doubles/recording-server.ts'

type Item = Record<string, unknown> & { type: string; id: string }
type Asked = { input: { type?: string }[] | string; model: string; stream?: boolean }

/** Equal requests get equal bytes, so that two runs of a program can be compared. */
function outputOf({ input }: Asked): Item[] {
  const items = typeof input === 'string' ? [] : input
  const n = items.length
  if (items.at(-1)?.type !== 'function_call_output') {
    const args = '{"city":"Lisbon","days":2}'
    const call = { call_id: `call_${n}`, name: 'forecast', arguments: args, status: 'completed' }
    return [message(n, 'Let me look.'), { type: 'function_call', id: `fc_${n}`, ...call }]
  }
  return [message(n, 'The forecast says sun.')]
}

const message = (n: number, text: string): Item => ({
  type: 'message',
  id: `msg_${n}`,
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text, annotations: [] }],
})

type Event = Record<string, unknown> & { type: string }

function itemEvents(item: Item, output_index: number): Event[] {
  const place = { item_id: item.id, output_index }
  const added = { type: 'response.output_item.added', output_index }
  const done = { type: 'response.output_item.done', output_index, item }
  if (item.type === 'function_call') {
    const text = item.arguments
    return [
      { ...added, item: { ...item, arguments: '', status: 'in_progress' } },
      { type: 'response.function_call_arguments.delta', ...place, delta: text },
      { type: 'response.function_call_arguments.done', ...place, arguments: text },
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

/** A model of the Responses API that asks for the tool `forecast` once in each turn, and then answers. */
export const respondWithForecast: Responder = async (seen, answer) => {
  const asked = JSON.parse(seen.body.toString()) as Asked
  const output = outputOf(asked)
  const usage = {
    input_tokens: 21,
    output_tokens: 9,
    total_tokens: 30,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens_details: { reasoning_tokens: 0 },
  }
  // Libraries take equal ids for the same answer.
  const id = `resp_${asked.input.length}`
  const whole = { id, object: 'response', created_at: 1_700_000_000, model: asked.model }
  const response = { ...whole, status: 'completed', output, usage, error: null }
  if (!asked.stream) {
    answer.head(200, { 'content-type': 'application/json' })
    await answer.write(JSON.stringify(response))
    return answer.end()
  }
  const events: Event[] = [
    { type: 'response.created', response: { ...response, status: 'in_progress', output: [] } },
    ...output.flatMap(itemEvents),
    { type: 'response.completed', response },
  ]
  answer.head(200, { 'content-type': 'text/event-stream; charset=utf-8' })
  for (const [sequence_number, event] of events.entries()) {
    const data = JSON.stringify({ ...event, sequence_number })
    await answer.write(`event: ${event.type}\ndata: ${data}\n\n`)
  }
  answer.end()
}
