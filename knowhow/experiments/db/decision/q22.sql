SELECT code, count(*), sum(c_acctbal) FROM (
    SELECT substring(c_phone FROM 1 FOR 2) AS code, c_acctbal FROM customer
    WHERE substring(c_phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17')
        AND c_acctbal > (
            SELECT avg(c_acctbal) FROM customer
            WHERE c_acctbal > 0.00 AND substring(c_phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17'))
        AND NOT EXISTS (SELECT 1 FROM orders WHERE o_custkey = c_custkey)) AS chosen
GROUP BY code ORDER BY code;
