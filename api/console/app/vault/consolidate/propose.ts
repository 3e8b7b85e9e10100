import { callWithKey, UserError } from '#api/console/app/api-call.ts'
import { currentCredential } from '#api/console/app/credential.ts'
import type { Proposal } from '#api/console/app/vault/consolidate/held-batch.ts'
import type { CheckedOutBatch } from '#api/contract/generated/types.ts'

/** @property providerKey sent in a header of the call and nowhere stored; empty: the key of the account */
export type ChosenModel = { model: string; providerKey: string }

type Contract = CheckedOutBatch['reflection_contract']
type Turn = { role: 'system' | 'user' | 'assistant'; content: string }

const attemptsMax = 3

/**
 * Has a model write the reflections of a batch by the contract of the batch, in a call without memory. An
 * answer that is of no use is sent back with its fault, at most twice.
 *
 * @throws UserError when the last answer is of no use either; what `callWithKey` throws.
 */
export async function proposeReflections(
  { memories, reflection_contract: contract }: CheckedOutBatch,
  chosen: ChosenModel,
  signal: AbortSignal,
): Promise<Proposal[]> {
  const turns: Turn[] = [
    { role: 'system', content: contract.instructions },
    { role: 'user', content: memories.map(memory => JSON.stringify(memory)).join('\n') },
  ]
  for (let attempt = 1; ; attempt++) {
    const text = await answerOf(chosen, turns, signal)
    const proposals = parseProposals(text, contract)
    if (typeof proposals !== 'string') return proposals
    if (attempt === attemptsMax) {
      throw new UserError(`${chosen.model} gave no usable answer: ${proposals}`)
    }
    turns.push(
      { role: 'assistant', content: text || '(nothing)' },
      {
        role: 'user',
        content: `That cannot be used: ${proposals}. Answer again with the complete JSON object and nothing else.`,
      },
    )
  }
}

/** A 401 here is about the key for the provider: it must not end the session of the tab. */
async function answerOf(
  { model, providerKey }: ChosenModel,
  messages: readonly Turn[],
  signal: AbortSignal,
): Promise<string> {
  const headers = {
    'x-memory-mode': 'off' as const,
    ...(providerKey && { 'x-provider-key': providerKey }),
  }
  const body = { model, messages: [...messages] }
  const key = currentCredential()?.key ?? ''
  const answer = await callWithKey(key, 'POST /v1/chat/completions', { headers, body }, signal)
  const { content } = answer.choices[0]?.message ?? {}
  return typeof content === 'string' ? content : ''
}

/** @returns what is wrong with an answer that cannot be committed */
function parseProposals(answer: string, contract: Contract): Proposal[] | string {
  const value = parseJson(answer)
  const entries = Array.isArray(value) ? value : (value as { entries?: unknown } | null)?.entries
  if (!Array.isArray(entries)) return 'the answer is no JSON object with entries'
  const { min_entries: min, max_entries: max, entry_schema } = contract
  if (entries.length < min || entries.length > max) {
    return `it has ${entries.length} entries, not ${min} to ${max}`
  }
  const proposals = entries.map(entry => toProposal(entry, entry_schema))
  const fault = proposals.find(proposal => typeof proposal === 'string')
  return fault ?? (proposals as Proposal[])
}

function toProposal(entry: unknown, rules: Contract['entry_schema']): Proposal | string {
  const { text, importance } = (entry ?? {}) as Record<string, unknown>
  const { minimum, maximum } = rules.importance
  if (typeof text !== 'string' || text.trim() === '') return 'a text is empty'
  if (text.trim().length > rules.text.maxLength) return 'a text is too long'
  if (!Number.isInteger(importance) || Number(importance) < minimum || Number(importance) > maximum)
    return `an importance is no whole number from ${minimum} to ${maximum}`
  return { text: text.trim(), importance: Number(importance) }
}

/** The JSON of an answer, which may be in a code fence, between sentences or after a model's thoughts. */
function parseJson(answer: string): unknown {
  const thoughtsEnd = answer.lastIndexOf('</think>')
  const text = thoughtsEnd === -1 ? answer : answer.slice(thoughtsEnd + '</think>'.length)
  const start = text.search(/[{[]/)
  const end = Math.max(text.lastIndexOf('}'), text.lastIndexOf(']'))
  try {
    return JSON.parse(text.slice(Math.max(0, start), end + 1))
  } catch {
    return null
  }
}
