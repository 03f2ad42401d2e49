/** The voters as they are configured: clusters, and what must hold while their set changes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { accepted, complaints, routes } from './config-source.ts';

const redis = (lists: string): string => `service: a\nredis: {${lists}}\n${routes()}`;
const list = (...names: string[]): string => `[${names.map((name) => `{url: 'redis://${name}'}`).join(', ')}]`;
const change = (previous: string[], nodes: string[]): string =>
  redis(`nodes: ${list(...nodes)}, previous: ${list(...previous)}`);

test('a cluster is one node, named after its first member', () => {
  const { config, warnings } = accepted(
    redis("nodes: [{cluster: ['redis://a', 'redis://b:7000']}, {url: 'redis://c'}, {url: 'redis://d'}]"),
  );
  assert.deepEqual(
    config.redis.nodes.map(({ name, cluster }) => [name, cluster]),
    [
      [
        'a:6379',
        [
          { host: 'a', port: 6379 },
          { host: 'b', port: 7000 },
        ],
      ],
      ['c:6379', undefined],
      ['d:6379', undefined],
    ],
  );
  assert.deepEqual(warnings, []);
});

test('one server or one cluster, and nobody twice, not even as a member', () => {
  assert.deepEqual(complaints(redis("nodes: [{url: 'redis://a', cluster: ['redis://b']}]")), [
    'redis.nodes[0]: found url and cluster; needs url for one server, or cluster for some members of a Redis Cluster',
  ]);
  assert.deepEqual(complaints(redis('nodes: [{username: me}]')), [
    'redis.nodes[0]: found neither url nor cluster; needs url for one server, or cluster for some members of a Redis Cluster',
  ]);
  assert.deepEqual(complaints(redis("nodes: [{cluster: ['redis://a', 'rediss://b']}]")), [
    'redis.nodes[0].cluster[1]: found rediss:// beside redis://; needs one of them for all members',
  ]);
  assert.deepEqual(
    complaints(redis("nodes: [{url: 'redis://a'}, {cluster: ['redis://b', 'redis://a']}, {url: 'redis://c'}]")),
    [
      'redis.nodes[1].cluster[1]: found a:6379, which redis.nodes[0] is already; needs another Redis, as one cannot vote twice',
    ],
  );
  assert.deepEqual(complaints(redis('nodes: [{cluster: []}]')), [
    'redis.nodes[0].cluster: found an empty list; needs at least 1 entry',
  ]);
});

test('redis.previous: the voters until now, odd in number as well; a node may stay', () => {
  const { config, warnings } = accepted(change(['a', 'b', 'c'], ['c', 'd', 'e']));
  assert.deepEqual(
    config.redis.previous.map(({ name }) => name),
    ['a:6379', 'b:6379', 'c:6379'],
  );
  assert.deepEqual(warnings, []);
  assert.deepEqual(complaints(change(['a', 'b'], ['c', 'd', 'e'])), [
    'redis.previous: found 2 nodes, of which 0 may fail, no more than of 1; needs 1, 3, 5 or 7',
  ]);
  accepted(change(['a'], ['a', 'b', 'c']));
  accepted(change(['a', 'b', 'c'], ['a', 'b', 'd']));
  accepted(change(['a', 'b', 'c', 'd', 'e'], ['e', 'f', 'g']));
});

test('redis.previous: those that stay must not be a majority that they were not before', () => {
  assert.deepEqual(complaints(change(['a', 'b', 'c'], ['a'])), [
    'redis.previous: found 3 nodes, of which 1 stay, enough to decide among 1 what they could not before; needs fewer of them in redis.nodes, and new ones in their place',
  ]);
  assert.deepEqual(complaints(change(['a', 'b', 'c', 'd', 'e'], ['a', 'b', 'f'])), [
    'redis.previous: found 5 nodes, of which 2 stay, enough to decide among 3 what they could not before; needs fewer of them in redis.nodes, and new ones in their place',
  ]);
  assert.deepEqual(complaints(redis(`previous: ${list('a')}`)), [
    'redis.previous: found without redis.nodes; needs the new nodes there',
  ]);
  const { warnings } = accepted(change(['a', 'b', 'c'], ['c', 'b', 'a']));
  assert.deepEqual(warnings, ['redis.previous: the same as redis.nodes: nothing changes, take it out']);
});

test('redis.previous: what stays is written the same in both lists, a cluster as well', () => {
  const both = (previous: string, nodes: string): readonly string[] =>
    complaints(redis(`nodes: [${nodes}], previous: [${previous}]`));
  const cluster = (...members: string[]): string =>
    `{cluster: [${members.map((name) => `'redis://${name}'`).join(', ')}]}`;
  assert.deepEqual(both(cluster('a', 'b'), cluster('b', 'a')), [
    'redis.previous: found the cluster of a:6379, which is the cluster of b:6379 in redis.nodes; needs the same in both lists',
  ]);
  assert.deepEqual(both(cluster('a', 'b'), "{url: 'redis://b'}"), [
    'redis.previous: found the cluster of a:6379, which is b:6379 in redis.nodes; needs the same in both lists',
  ]);
  assert.deepEqual(both("{url: 'redis://a'}", cluster('a')), [
    'redis.previous: found a:6379, which is the cluster of a:6379 in redis.nodes; needs the same in both lists',
  ]);
  const [nodes] = [
    accepted(redis(`nodes: [${cluster('a', 'c')}], previous: [${cluster('a', 'b')}]`)).config.redis.nodes,
  ];
  assert.equal(nodes.length, 1, 'its members may change');
});

test('a member of a cluster that is written twice, and a node that is no mapping', () => {
  assert.deepEqual(complaints(redis("nodes: [{cluster: ['redis://a', 'redis://a']}]")), [
    'redis.nodes[0].cluster[1]: found a:6379 a second time; needs each member once',
  ]);
  assert.deepEqual(complaints(redis("nodes: ['redis://:hidden@a']")), [
    'redis.nodes[0]: found "redis://…"; needs a mapping, such as {url: redis://host:port}',
  ]);
});
