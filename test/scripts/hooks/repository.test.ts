import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { findRepository, nameRepository, normalizeRemote } from '#scripts/hooks/repository.ts'
import { allowRepository, claimRepository } from '#scripts/hooks/repository-claims.ts'

/** A home of its own: the configuration of git and ssh, and what the hooks keep. */
const home = t.testdir({
  '.gitconfig':
    '[url "git@github.com:"]\n\tinsteadOf = gh:\n[url "https://token@gitlab.com/"] insteadof = "lab/"\n',
  '.ssh': { config: 'Host work other\n  HostName github.com\nHost *\n  HostName x.org\n' },
})
process.env.HOME = home
process.env.XDG_STATE_HOME = join(home, 'state')
delete process.env.XDG_CONFIG_HOME
delete process.env.GIT_CONFIG_GLOBAL

t.test('a repository has one name in every clone', t => {
  const names: Record<string, string[]> = {
    'github.com/acme/api': [
      'git@GitHub.com:acme/api.git',
      'https://user:pw@github.com/acme/api/',
      'https://www.github.com/Acme/API.git',
      'ssh://git@github.com:22/acme/api.git',
      'git@github.com-work:acme/api.git',
      'git@work:acme/api',
      'ssh://git@ssh.github.com:443/acme/api.git',
      'git@ssh.github.com:443/acme/api.git',
      'git://github.com/acme/api.git',
      'git+ssh://git@github.com/acme/api.git',
      ' https://github.com/acme/api.git?token=x#main ',
      'org-1234@github.com:acme/api.git',
    ],
    'dev.azure.com/org/project/repo': [
      'git@ssh.dev.azure.com:v3/org/project/repo',
      'https://org@dev.azure.com/org/project/_git/repo',
      'https://org.visualstudio.com/project/_git/repo',
      'org@vs-ssh.visualstudio.com:v3/org/project/repo',
    ],
    'dev.azure.com/org/repo/repo': ['https://dev.azure.com/org/_git/repo'],
    'gitlab.com/acme/api': ['ssh://git@altssh.gitlab.com:443/acme/api.git'],
    '[::1]/acme/api': ['ssh://git@[::1]:22/acme/api'],
    'xn--bcher-kva.xn--p1ai-x/a': ['https://xn--bcher-kva.xn--p1ai-x/a'],
    '/srv/git/api.git': ['/srv/git/api.git', 'file:///srv/git/api.git'],
    '../api': ['../api'],
    'C:\\git\\api': ['C:\\git\\api'],
  }
  for (const [name, urls] of Object.entries(names)) {
    for (const url of urls) t.equal(normalizeRemote(url), name, url)
  }
  t.end()
})

t.test('no login is kept, whatever the address looks like', t => {
  for (const url of [
    'https://oauth2:SECRET@gitlab.example.com/acme/100%.git',
    'https://me:SECRET@git.example.com:99999/acme/api.git',
    'https://me:SECRET@git.example.com:port/acme/api.git',
    'https://me:SEC/RET@git.example.com/acme/api.git',
    'https://me:S@SECRET@git.example.com/acme/api.git',
    'https://SECRET@git.example.com',
    'https://git.example.com/acme/api.git?private_token=SECRET',
    'me:SECRET@git.example.com:acme/api.git',
    'ssh://me:SECRET@/acme/api',
  ]) {
    t.notMatch(normalizeRemote(url), /SEC|RET/, url)
  }
  t.end()
})

t.test('the configuration is read by the syntax of git', t => {
  const configs = [
    '[remote "fork"]\n\turl = x\n[remote "origin"]\n\turl = git@github.com:acme/api.git\n',
    '[Remote "origin"]\n  URL = "https://github.com/acme/api.git" ; mine\n',
    '[remote "origin"] url = git@github.com:acme/api.git # mine\n',
    '[remote "origin"]\r\nurl = git@github.com:acme/\\\napi.git\r\n',
    '[remote "origin"]\nurl = gh:acme/api\n',
    '[remote "upstream"]\nurl = git@github.com:acme/api.git\n[branch "main"]\nremote = upstream\n',
  ]
  const folder = t.testdir({ '.git': { config: '' }, src: {} })
  for (const config of configs) {
    writeFileSync(join(folder, '.git/config'), config)
    t.equal(nameRepository(join(folder, 'src')), 'github.com/acme/api', config)
  }
  writeFileSync(join(folder, '.git/config'), '[remote "origin"]\nurl = lab/acme/api\n')
  t.equal(nameRepository(folder), 'gitlab.com/acme/api')
  writeFileSync(join(folder, '.git/config'), '[core]\n')
  t.equal(nameRepository(join(folder, 'src')), folder)
  rmSync(join(folder, '.git'), { recursive: true })
  t.equal(nameRepository(`/${'x'.repeat(300)}`).length, 256)
  t.end()
})

t.test('a name belongs to the folder that used it first, until another is allowed', t => {
  const config = '[remote "origin"]\n\turl = git@h.org:acme/secret.git\n'
  const folder = t.testdir({
    clone: { '.git': { config, worktrees: {} }, src: {} },
    work: {},
    archive: { '.git': { config } },
    pointing: { '.git': 'gitdir: ../clone/.git\n' },
    lying: { '.git': 'gitdir: ../clone/.git/worktrees/w\n' },
    none: { '.git': { config: '[core]\n' } },
  })
  const worktree = join(folder, 'clone/.git/worktrees/w')
  mkdirSync(worktree, { recursive: true })
  writeFileSync(join(worktree, 'commondir'), '../..\n')
  writeFileSync(join(worktree, 'gitdir'), `${join(folder, 'work/.git')}\n`)
  writeFileSync(join(folder, 'work/.git'), `gitdir: ${worktree}\n`)
  const claim = (name: string) => claimRepository(join(folder, name))

  t.same(claim('clone/src'), { name: 'h.org/acme/secret' })
  t.same(claim('work'), { name: 'h.org/acme/secret' }, 'a worktree, which its repository names')
  for (const name of ['archive', 'pointing', 'lying']) {
    t.equal(findRepository(join(folder, name)).name, 'h.org/acme/secret')
    t.match(claim(name), {
      name: join(folder, name),
      question: /says that it is h\.org\/acme\/secret, which was first used in .*clone\. .*allow/,
    })
  }
  t.same(claim('none'), { name: join(folder, 'none') })
  t.match(allowRepository(join(folder, 'archive')), 'uses the memory of h.org/acme/secret')
  t.same(claim('archive'), { name: 'h.org/acme/secret' })
  t.match(claim('lying').question, /allow/)
  t.match(allowRepository(join(folder, 'none')), /no folder with a remote/)
  t.match(allowRepository('h.org/acme/secret'), /Every folder/)
  t.same(claim('lying'), { name: 'h.org/acme/secret' })
  t.end()
})
