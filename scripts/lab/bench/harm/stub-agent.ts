/** The stub agent's answer to a prompt without memories. */
export const ownAnswer = 'What the agent knows by itself.'

const blockPattern = /<memory_context>\n([^]*?)\n<\/memory_context>/

/** The time, the speaker and marks of a line of a block. */
const linePrefixPattern = /^\[[^\]]{1,200}\] /

/**
 * An agent that distraction harms as much as possible: it repeats all that stands in its memory block and
 * knows no better, so one irrelevant line makes its answer wrong. Without a block it answers by itself.
 *
 * @param prompt all that a model reads
 */
export function answerAsStubAgent(prompt: string): string {
  const block = blockPattern.exec(prompt)?.[1]
  if (block === undefined) return ownAnswer
  return block
    .split('\n')
    .map(line => line.replace(linePrefixPattern, ''))
    .join('\n')
}

/** Whether the stub agent's answer is right: the memory that answers and no other; else what it knows. */
export const isRight = (
  answer: string,
  { answer: wanted = ownAnswer }: { answer?: string },
): boolean => answer === wanted
