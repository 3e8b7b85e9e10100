import type { GetPromptResult } from '@modelcontextprotocol/server'

type PromptArgument = { name: string; description: string; required: boolean }

/** A request that a person chooses in a client, such as a command; it fills in the words. */
export type Prompt = {
  name: string
  title: string
  description: string
  arguments: PromptArgument[]
  /** Tools that the text asks a model to use: a client that is not shown all of them is not shown the prompt. */
  tools: string[]
  /** What the person says with it; the arguments are those of `arguments`, trimmed. */
  text(args: Record<string, string>): string
}

const required = (name: string, description: string): PromptArgument => ({
  name,
  description,
  required: true,
})

export const prompts: readonly Prompt[] = [
  {
    name: 'recall',
    title: 'Recall about …',
    description: 'What memory holds about something.',
    arguments: [required('subject', 'What to recall, such as "the move to Lisbon"')],
    tools: ['search'],
    text: ({ subject }) =>
      `Search my memory for this: ${subject}\n\n` +
      'Tell me what it holds, with the day of each part. Say so if it holds nothing, and add nothing of your own.',
  },
  {
    name: 'about_me',
    title: 'What do you know of me?',
    description: 'What memory holds about the user.',
    arguments: [],
    tools: ['profile', 'search'],
    text: () =>
      'What do you know of me? Read my profile with the tool `profile`, and search for what I prefer, plan and ' +
      'work on. Answer in a short list in my words, with the day of each. Say so if memory holds nothing.',
  },
  {
    name: 'forget',
    title: 'Forget this',
    description: 'Finds memories of something, and deletes those that the user confirms.',
    arguments: [required('what', 'What to forget, such as "my old address"')],
    tools: ['search', 'delete'],
    text: ({ what }) =>
      `Forget this: ${what}\n\n` +
      'Search my memory for it and show me each memory that you would delete. Delete them only after I have ' +
      'confirmed: they cannot be brought back. Leave every other memory as it is.',
  },
]

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
  return {
    description: prompt.description,
    messages: [{ role: 'user', content: { type: 'text', text: prompt.text(args) } }],
  }
}
