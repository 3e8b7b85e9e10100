import type { Connection } from './files.ts'
import { askService } from './service.ts'
import type { Exchange } from './turn-state.ts'

/** Milliseconds that the service has for its answer, from the request on. */
export const deadlineMs = Number(process.env['MEMORY_VAULT_HOOK_MS']) || 1000

/** Kinds of a profile that are about the person: possessions and changes are of a project as often. */
const personKinds = 'instruction,name,role,place,date,person,preference'

/** The block for a prompt: what was said in this repository before. @throws Error without an answer in time. */
export async function recallForPrompt(
  connection: Connection,
  { prompt, repository, last }: { prompt: string; repository: string; last?: Exchange | undefined },
): Promise<string | undefined> {
  const before = last
    ? [
        ...last.prompts.map(content => ({ role: 'user', content })),
        ...(last.answer === '' ? [] : [{ role: 'assistant', content: last.answer }]),
      ]
    : []
  const body = await askService(connection, {
    method: 'POST',
    path: '/v1/memory/prepare',
    body: {
      messages: [...before, { role: 'user', content: prompt }],
      metadata: { repository },
    },
    timeoutMs: deadlineMs,
  })
  return textOrNothing(body['context'])
}

/** What holds of the person in every repository, as a block. @throws Error without an answer in time. */
export async function recallPerson(connection: Connection): Promise<string | undefined> {
  const body = await askService(connection, {
    method: 'GET',
    path: `/v1/memory/profile?current=true&kinds=${personKinds}`,
    timeoutMs: deadlineMs,
  })
  return textOrNothing(body['text'])
}

const textOrNothing = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined
