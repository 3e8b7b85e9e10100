import rows from '#api/mcp/prompts.json' with { type: 'json' }
import type { GetPromptResult } from '@modelcontextprotocol/server'

/** A request that a person chooses in a client, such as a command; it fills in the words. */
export type Prompt = {
  name: string
  title: string
  description: string
  arguments: { name: string; description: string; required: boolean }[]
  /** Tools that the text asks a model to use: a client that is not shown all of them is not shown the prompt. */
  tools: string[]
  /** What the person says with it; `{name}` is an argument, trimmed. */
  text: string
}

export const prompts: readonly Prompt[] = rows

/** As clients list it. */
export const describePrompt = ({ name, title, description, arguments: args }: Prompt) => ({
  name,
  title,
  description,
  arguments: args,
})

/**
 * The message that a prompt becomes.
 *
 * @throws Error when a required argument is missing or empty.
 */
export function fillPrompt(prompt: Prompt, given: Record<string, string> = {}): GetPromptResult {
  const args = Object.fromEntries(
    prompt.arguments.map(({ name }) => [name, (given[name] ?? '').trim()]),
  )
  const missing = prompt.arguments.find(({ name, required }) => required && args[name] === '')
  if (missing) throw new Error(`The prompt ${prompt.name} needs ${missing.name}`)
  const text = prompt.text.replaceAll(/\{(\w+)\}/g, (_, name: string) => args[name] ?? '')
  return {
    description: prompt.description,
    messages: [{ role: 'user', content: { type: 'text', text } }],
  }
}
