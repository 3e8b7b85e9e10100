import type { BuiltInName } from '#shared/core/provider-registry.ts'

/**
 * The default chat model: the newest of the first family here that can be reached. Numbers in a
 * name are its version, the highest is the newest; names with more parts (previews, small or
 * specialised models) are not of the family.
 */
const preferredFamilies: [BuiltInName, RegExp][] = [
  ['openai', /^gpt-(\d+)(?:\.(\d+))?$/],
  ['anthropic', /^claude-sonnet-(\d{1,2})(?:-(\d{1,2}))?(?:-(\d{8}))?$/],
  ['google', /^gemini-(\d+)(?:\.(\d+))?-flash$/],
  ['mistral', /^mistral-(?:large|medium)-latest$/],
  ['xai', /^grok-(\d+)(?:[.-](\d{1,2}))?$/],
  ['deepseek', /^deepseek-chat$/],
  ['openrouter', /^openrouter\/auto$/],
  ['groq', /^llama-(\d+)\.(\d+)-(\d+)b-versatile$/],
]

/**
 * The provider-prefixed default of the reachable models: else the first model there is, else null.
 */
export function pickDefaultModel(
  lists: readonly { provider: string; models: readonly string[] }[],
): string | null {
  for (const [provider, family] of preferredFamilies) {
    const models = lists.find(list => list.provider === provider)?.models ?? []
    const [newest] = models
      .flatMap(name => parseVersion(name, family))
      .toSorted((one, other) => compareVersions(other.version, one.version))
    if (newest) return `${provider}/${newest.name}`
  }
  const first = lists.find(({ models }) => models.length > 0)
  return first ? `${first.provider}/${first.models[0]}` : null
}

function parseVersion(name: string, family: RegExp): { name: string; version: number[] }[] {
  const match = family.exec(name)
  return match ? [{ name, version: match.slice(1).map(part => Number(part ?? 0)) }] : []
}

function compareVersions(one: readonly number[], other: readonly number[]): number {
  const index = one.findIndex((part, position) => part !== other[position])
  return index === -1 ? 0 : one[index]! - other[index]!
}
