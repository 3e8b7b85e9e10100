/** A sample of Prometheus' text format. */
export type Sample = { name: string; labels: Record<string, string>; value: number }

export function parseSamples(text: string): Sample[] {
  const samples: Sample[] = []
  for (const line of text.split('\n')) {
    const match = /^([a-z_][a-z0-9_]*)(?:\{(.*)\})? (\S+)$/.exec(line)
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
