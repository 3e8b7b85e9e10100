import type { Test } from 'tap'
import type { TestClient } from '#test/support/start/api.ts'

/** A word that no other text holds, for looking for it in all that leaves the service. */
export const mark = 'Zanzibarquokka'

/**
 * Sends marked texts through every door that takes words: store, model call, search, prepare, edit, delete, clear, and
 * requests that are refused. The mark is in texts, metadata, names of sessions, paths, queries, headers and ids.
 *
 * @returns the memory that was found, edited and deleted
 */
export async function liveMarked(t: Test, client: TestClient): Promise<{ id: string }> {
  const say = (content: string) => ({ role: 'user', content })
  const send = async (
    status: number,
    path: string,
    body: unknown,
    headers = {},
    method = 'POST',
  ) => {
    const answer = await client.send(method, path, { body, headers })
    t.equal(answer.status, status, `${method} ${path.slice(0, 30)}: ${JSON.stringify(answer.body)}`)
    return answer.body
  }
  const messages = [say(`My dog is called ${mark} and likes tea`)]
  await send(200, '/v1/memory/ingest?wait=true', { messages, metadata: { pet: mark } })
  await send(200, '/v1/memory/ingest?wait=true', {
    messages: [say(`${mark} sleeps on the sofa`)],
    session_id: `holiday of ${mark}`,
  })
  const query = { query: `What is my dog ${mark} called?`, limit: 5 }
  const { memories } = await send(200, '/v1/memory/search', query)
  const { id } = memories[0]
  await send(200, '/v1/memory/prepare', { messages: [say(`Who is ${mark}?`)] })
  const call = { model: 'openai/gpt-4o-mini', messages: [say(`Tell me about my dog ${mark}`)] }
  await send(200, '/v1/chat/completions', call, { 'x-provider-key': 'sk-own' })
  await send(200, '/v1/memory/edit', { memory_id: id, text: `My cat is called ${mark}` })
  await send(200, '/v1/memory/delete-ids', { ids: [id] })
  await send(
    200,
    `/v1/memory?session_id=${encodeURIComponent(`holiday of ${mark}`)}`,
    undefined,
    {},
    'DELETE',
  )
  // Refused, and answered as such.
  await send(400, '/v1/memory/search', { query: 1, [mark]: mark })
  await send(400, '/v1/memory/search', `{"query": "${mark}`, { 'content-type': 'application/json' })
  await send(404, `/v1/${mark}?word=${mark}`, undefined, { 'user-agent': mark }, 'GET')
  await send(404, `/v1/memory/${mark}`, undefined, {}, 'GET')
  return { id }
}
