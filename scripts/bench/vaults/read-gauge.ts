/** The sum of a metric of a process, over its labels. */
export async function readGauge(port: number, secret: string, name: string): Promise<number> {
  const answer = await fetch(`http://127.0.0.1:${port}/metrics`, {
    headers: { authorization: `Bearer ${secret}` },
  })
  const text = await answer.text()
  if (answer.status !== 200) throw new Error(`${answer.status} ${text}`)
  const samples = text.split('\n').filter(line => line.split(/[ {]/, 1)[0] === name)
  return samples.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
}
