/** A sample of Prometheus' text format. */
export type Sample = { name: string; labels: Record<string, string>; value: number }

export function parseSamples(text: string): Sample[] {
  const samples: Sample[] = []
  for (const line of text.split('\n')) {
    const match = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/.exec(line)
    if (!match) continue
    const [, name = '', written = '', value] = match
    const labels: Record<string, string> = {}
    for (const [, label = '', text = ''] of written.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) {
      labels[label] = text
    }
    samples.push({ name, labels, value: Number(value) })
  }
  return samples
}

export const sumSamples = (
  samples: readonly Sample[],
  name: string,
  matches: (labels: Record<string, string>) => boolean = () => true,
): number =>
  samples
    .filter(sample => sample.name === name && matches(sample.labels))
    .reduce((sum, { value }) => sum + value, 0)

export type QueueStats = {
  name: string
  waiting: number
  active: number
  dead: number
  oldestSeconds: number
}

/** Queues with jobs come first. */
export function queueStats(samples: readonly Sample[]): QueueStats[] {
  const names = samples
    .filter(({ name }) => name === 'vault_queue_jobs')
    .map(({ labels }) => labels.queue!)
  const sampleValue = (metric: string, queue: string, state?: string): number =>
    sumSamples(
      samples,
      metric,
      labels => labels.queue === queue && (!state || labels.state === state),
    )
  return [...new Set(names)]
    .map(name => ({
      name,
      waiting:
        sampleValue('vault_queue_jobs', name, 'waiting') +
        sampleValue('vault_queue_jobs', name, 'held'),
      active: sampleValue('vault_queue_jobs', name, 'active'),
      dead: sampleValue('vault_queue_dead_jobs', name),
      oldestSeconds: sampleValue('vault_queue_oldest_seconds', name),
    }))
    .sort(
      (one, other) =>
        other.dead - one.dead || other.waiting - one.waiting || one.name.localeCompare(other.name),
    )
}
