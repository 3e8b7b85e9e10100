// What the programs of this folder share: vaults of two users, what the model was sent, and checks that are printed.
import { isDeepStrictEqual } from 'node:util'
import { createVault } from 'memory-vault-client'

const { BASE_URL, OWNER_KEY, RUN, SEEN } = process.env
export const vaultOf = user => createVault(BASE_URL, OWNER_KEY, { user: RUN + user })
export const answer = 'Noted. Crème brûlée, 東京 and a 🦊 will be remembered.'
export const pixel =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

export const check = (name, isTrue, detail = '') =>
  console.log(
    JSON.stringify({ check: name, ok: Boolean(isTrue), detail: [detail].join().slice(0, 2000) }),
  )
export const equal = (name, found, wanted) =>
  check(
    name,
    isDeepStrictEqual(found, wanted),
    `${JSON.stringify(found)} is not ${JSON.stringify(wanted)}`,
  )

/** The bodies that the model was sent since the last call. */
export const seen = async () => await (await fetch(SEEN)).json()
export const remember = async (vault, content) =>
  await vault.ingest({ messages: [{ role: 'user', content }], wait: true })

/** What is stored, oldest first, once nothing is under way. */
export async function texts(vault, session) {
  for (;;) {
    const { items } = await vault.call('GET /v1/operations')
    if (!items.some(({ state }) => state === 'accepted' || state === 'running')) break
    await new Promise(resolve => setTimeout(resolve, 50))
  }
  const body = {
    from: '0001-01-01',
    to: '9999-12-31',
    max_tokens: 200_000,
    ...(session && { session_id: session }),
  }
  const { memories } = await vault.call('POST /v1/memory/date-search', { body })
  const odd = memories
    .map(({ content }) => content)
    .filter(text => /^\s*[[{]|memory_context|":/.test(text))
  equal('what is stored are the words', odd, [])
  return memories.sort((a, b) => (a.timestamp < b.timestamp ? -1 : 1)).map(({ content }) => content)
}

/** Runs the step that is the argument, in a process of its own, as after a restart. */
export async function main(steps) {
  try {
    await steps[process.argv[2]]()
  } catch (error) {
    check(`${process.argv[2]} ends without a fault`, false, error.stack)
  }
  process.exit(0)
}
