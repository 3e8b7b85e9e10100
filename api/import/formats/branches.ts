/** A message in a tree: what it answers, and when it was written (milliseconds; 0 when unknown). */
export type TreeNode = { parent: string | undefined; time: number }

/** The name of messages of other branches in the list of losses. */
export const otherBranches = 'messages of branches that were edited or regenerated'

/**
 * Returns the ids of the branch that was shown last, its first message first.
 *
 * @param leaf the last message as the export names it; where it names none, or one that it lacks, the newest
 *   message that nothing answers
 */
export function branchShown(
  nodes: ReadonlyMap<string, TreeNode>,
  leaf: string | undefined,
): Set<string> {
  const branch = new Set<string>()
  let id = leaf !== undefined && nodes.has(leaf) ? leaf : newestLeaf(nodes)
  while (id !== undefined && nodes.has(id) && !branch.has(id)) {
    branch.add(id)
    id = nodes.get(id)!.parent
  }
  return new Set([...branch].reverse())
}

function newestLeaf(nodes: ReadonlyMap<string, TreeNode>): string | undefined {
  const answered = new Set([...nodes.values()].map(({ parent }) => parent))
  let newest: [string, number] | undefined
  for (const [id, { time }] of nodes)
    if (!answered.has(id) && time >= (newest?.[1] ?? -Infinity)) newest = [id, time]
  return newest?.[0]
}
