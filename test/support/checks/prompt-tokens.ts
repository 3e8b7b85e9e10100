import { countTokens } from '#shared/core/tokens.ts'

/** Providers keep no prefix that is shorter, and keep longer ones in steps. */
const cachedMin = 1_024
const cachedStep = 128

type PromptCount = { calls: number; tokens: number; uncached: number }

/**
 * Counts the input of model calls as providers with a prefix cache bill it: tokens of a prompt that begins
 * as an earlier one of its model are cached, from 1,024 on in steps of 128.
 */
export function countPrompts(prompts: readonly { model: string; text: string }[]): PromptCount {
  const earlier = new Map<string, string[]>()
  let tokens = 0
  let cached = 0
  for (const { model, text } of prompts) {
    const known = earlier.get(model) ?? []
    earlier.set(model, [...known, text].slice(-20))
    tokens += countTokens(text)
    const prefix = Math.max(0, ...known.map(other => commonLength(other, text)))
    const shared = countTokens(text.slice(0, prefix))
    if (shared >= cachedMin) cached += shared - (shared % cachedStep)
  }
  return { calls: prompts.length, tokens, uncached: tokens - cached }
}

function commonLength(one: string, other: string): number {
  const max = Math.min(one.length, other.length)
  let length = 0
  while (length < max && one[length] === other[length]) length++
  return length
}
