import { exitWithUsage } from '#scripts/command-line.ts'

const help = `Usage: npm run lab -- <scores | leaderboard> [--help]
`
const commands: Record<string, () => Promise<unknown>> = {
  scores: () => import('#scripts/lab/scores.ts'),
  leaderboard: () => import('#scripts/lab/leaderboard.ts'),
}
const [name = ''] = process.argv.splice(2, 1)
const command = Object.hasOwn(commands, name) ? commands[name] : undefined
if (name === '--help') process.stdout.write(help)
else if (command) await command()
else exitWithUsage([`No such command: ${name}`], help)
